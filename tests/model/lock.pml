/*
 * model/lock.pml - the protocol of src/lock, for spin. docs/MODEL.md says which step
 * is which function, what is left out, and how it is run (tests/model/run).
 *
 * One lock, exclusive and shared, N processes that take it, and one that breaks it. A step is one
 * system call that another process can notice: a process may be killed or stopped between any two.
 */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 1	/* how often each takes the lock */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef LEASES
#define LEASES 0	/* 1: a round may have a lease */
#endif
#ifndef DEADLINES
#define DEADLINES 0	/* 1: a round may give up while it waits */
#endif
#ifndef SHARED
#define SHARED 0	/* 1: a round may be shared; or PATTERN: those processes' rounds are */
#endif
#ifndef EXITS
#define EXITS 0		/* 1: a holder may exit instead of releasing, as `lock run` does */
#endif

#ifndef ORDER
#define ORDER 0		/* 1: each comes when the one before it has the lock or sleeps in the queue */
#endif

#define TICKETS 10
#define NOBODY  0
#define BREAKER N
#define ID(p)   ((p) + 1)	/* in the guard and in entries; 0 is nobody */

/* The kernel's: who lives, who runs, the flock. */
bool alive[N + 1];
bool stopped[N + 1];
byte guard;

/* The record: of each process the token and ticket with which it is a holder, or 0. */
byte tok[N], tik[N];
byte lease[N];		/* of the holder: 0 none, 1 running, 2 run out */
byte token;
byte first = 1, next = 1;

/* The record in the memory of the process that has the guard. */
byte m_tok[N], m_tik[N], m_lease[N];
byte m_token, m_first;
bool dirty;

/* The queue's entries, 0: gone. What the entry says of the lock it wants. */
byte entry[TICKETS];
bool wants_lease[N];
bool shared[N];

/* Channels: whose it is, and what is in it. Any number of "look again" are one. */
byte channel[N];	/* ticket, 0: removed, or closed by its reader */
byte message[N];	/* an unread token */
bool bell[N];		/* "look again" */

/* What a sleeper sleeps on. */
bool asleep[N];
byte watched[N];	/* bits of processes */
bool lease_clock[N];
bool turn_clock[N];

/* What nobody but the checker knows. */
byte in_hand[N];	/* the token it has read, from its channel or from the record */
byte believes[N];	/* the token with which it came back from acquire */
bool robbed[N];		/* lost it by lease or break, as it may */
byte highest;		/* token given */
byte acted;		/* highest token of a guarded action that was exclusive */
bool done[N + 1];
byte crashes, stops;
bool begun[N];		/* has the lock, or sleeps in the queue */

#define runs(p) (alive[p] && !stopped[p])

/* -- under the guard ------------------------------------------------------------- */

/* hf_guard_take: the flock, then the record is read. */
inline take_guard(me)
{
	atomic {
		guard == NOBODY ->
		guard = ID(me);
		i = 0;
		do
		:: i < N -> m_tok[i] = tok[i]; m_tik[i] = tik[i]; m_lease[i] = lease[i]; i++
		:: i == N -> break
		od;
		m_token = token;
		m_first = first;
		dirty = false;
		i = 0
	}
}

inline forget_record()
{
	k = 0;
	do
	:: k < N -> m_tok[k] = 0; m_tik[k] = 0; m_lease[k] = 0; k++
	:: k == N -> break
	od;
	m_token = 0;
	m_first = 0;
	dirty = false;
	k = 0
}

/* hf_guard_write: one pwrite. Tokens rise (L2), holders fit together (L1). */
inline write_record()
{
	d_step {
		i = 0;
		do
		:: i < N ->
			/* Taken out without having released, by a lease or a break? */
			if
			:: tok[i] != 0 && m_tok[i] != tok[i] && believes[i] == tok[i] && rob -> robbed[i] = true
			:: else
			fi;
			k = 0;
			do
			:: k < N ->
				assert(k == i || m_tok[i] == 0 || m_tok[k] == 0 || (shared[i] && shared[k]));
				k++
			:: k == N -> break
			od;
			tok[i] = m_tok[i];
			tik[i] = m_tik[i];
			lease[i] = m_lease[i];
			i++
		:: i == N -> break
		od;
		assert(m_token >= highest);
		highest = m_token;
		token = m_token;
		first = m_first;
		dirty = false;
		rob = false;
		i = 0;
		k = 0
	}
}

/* hf_guard_finish */
inline finish()
{
#ifndef MUTANT_REVOKE_UNWRITTEN
	if
	:: dirty -> write_record()
	:: else
	fi;
#endif
	d_step { forget_record(); rob = false; guard = NOBODY }
}

/*
 * hf_queue_take_back, of holder `h`: a write, then a read. The waiter may have been faster; else it
 * will look, and find that it has to queue again.
 */
inline take_back(taken)
{
	taken = false;
	if
	:: m_tik[h] != 0 && channel[h] == m_tik[h] && alive[h] ->
#ifndef MUTANT_TAKE_BACK_LATE
		bell[h] = true;
#endif
		d_step {
			if
			:: message[h] == m_tok[h] && channel[h] == m_tik[h] ->
				message[h] = 0;
				taken = true
			:: else
			fi
		};
#ifdef MUTANT_TAKE_BACK_LATE
		bell[h] = true
#endif
	:: else
	fi
}

#define waits(t)   (entry[t] != 0 && alive[entry[t] - 1])
#define reads(t)   (waits(t) && channel[entry[t] - 1] == (t))

/* hf_queue_nudge: the living one behind ticket `from` is told to look. */
inline nudge(from)
{
	d_step { at = (from + 1 > m_first -> from + 1 : m_first) }
	do
	:: at < next && waits(at) ->
		d_step {
			if
			:: reads(at) -> bell[entry[at] - 1] = true
			:: else
			fi;
			at = next
		}
	:: at < next && !waits(at) -> at++
	:: at >= next -> break
	od;
	at = 0
}

/*
 * pass_over_stopped: struck from the queue and told, for when they are continued; the one behind is told,
 * for it watches the wrong process.
 */
inline pass_over_stopped()
{
	at = m_first;
	fits = false;
	do
	:: at < next ->
		d_step {
			if
			:: waits(at) && stopped[entry[at] - 1] ->
				if
				:: reads(at) -> bell[entry[at] - 1] = true
				:: else
				fi;
				entry[at] = 0;
				fits = true
			:: waits(at) && !stopped[entry[at] - 1] && fits ->
				if
				:: reads(at) -> bell[entry[at] - 1] = true
				:: else
				fi;
				fits = false
			:: else
			fi;
			at++
		}
	:: at >= next -> break
	od;
	atomic { at = 0; fits = false }
}

/* hf_record_admits: process `p` beside the holders. */
inline admits(p, yes)
{
	yes = true;
	i = 0;
	do
	:: i < N ->
		if
		:: m_tok[i] != 0 && !(shared[i] && shared[p]) -> yes = false
		:: else
		fi;
		i++
	:: i == N -> break
	od;
	i = 0
}

/* hf_record_add */
inline add(p, t)
{
	m_token++;
	m_tok[p] = m_token;
	m_tik[p] = t;
	m_lease[p] = wants_lease[p];
	dirty = true
}

/* choose(): those whose turn it is and whose channel has a reader; the first that must wait ends it. */
inline choose()
{
	at = m_first;
	last = 0;
	do
	:: at < next && !reads(at) -> entry[at] = 0; at++; m_first = at
	:: at < next && reads(at) ->
		h = entry[at] - 1;
		admits(h, fits);
		if
		:: fits -> add(h, at); given = given | (1 << h); last = at; at++; m_first = at
		:: else -> break
		fi
	:: at >= next -> break
	od;
	fits = (last != 0 && (shared[entry[last] - 1] || wants_lease[entry[last] - 1]));
	at = 0;
	h = 0
}

/* Of those in `given`, the one with the highest ticket. */
inline last_of_given()
{
	h = N;
	i = 0;
	do
	:: i < N ->
		if
		:: (given >> i & 1) && (h == N || m_tik[i] > m_tik[h]) -> h = i
		:: else
		fi;
		i++
	:: i == N -> break
	od;
	i = 0
}

inline send_tokens()
{
	do
	:: given == 0 -> break
	:: given != 0 ->
		d_step {
			last_of_given();
			given = given & ~(1 << h);
			if
			:: alive[h] && channel[h] == m_tik[h] -> message[h] = m_tok[h]
			:: else -> m_tok[h] = 0; m_tik[h] = 0; m_lease[h] = 0; dirty = true
			fi;
			h = 0
		}
	od
}

/* hf_queue_admit: chooses, warns those behind where more than a death matters, writes, sends. */
inline admit()
{
	d_step { given = 0; choose() }
	if
	:: fits -> fits = false; nudge(last)
	:: else
	fi;
#ifdef MUTANT_RING_EARLY
	send_tokens();
#endif
	write_record();
	send_tokens();
	last = 0
}

/*
 * hf_channel_recall with a record: channels of the dead are removed, others but the
 * holders' are told to look.
 */
inline sweep(me)
{
	i = 0;
	do
	:: i < N ->
		if
		:: i != me && channel[i] != 0 && !alive[i] -> channel[i] = 0
		:: i != me && channel[i] != 0 && alive[i] && !(m_tok[i] != 0 && m_tik[i] == channel[i]) ->
			bell[i] = true
		:: else
		fi;
		i++
	:: i == N -> break
	od;
	i = 0
}

/* -- one process ------------------------------------------------------------------ */

#define was_granted(p) (mine != 0 && m_tok[p] != 0 && m_tik[p] == mine)
#define has_place(p)   (mine >= m_first && mine < next && entry[mine] == ID(p))

/* hf_queue_retell, by a waiter that finds its grant by looking. */
inline retell(me)
{
	h = 0;
	do
	:: h < N ->
		if
		:: h != me && m_tok[h] != 0 && m_tik[h] != 0 && channel[h] == m_tik[h] && alive[h] -> bell[h] = true
		:: else
		fi;
		h++
	:: h == N -> break
	od;
	h = 0
}

/* hf_attempt_watch: the waiter before us, and the clock by which we peek; else the holders. */
inline plan_watch(me)
{
	watched[me] = 0;
	lease_clock[me] = false;
	turn_clock[me] = false;
	h = 0;
	at = mine;
	do
	:: at <= m_first || h == 1 -> break
	:: at > m_first && h == 0 ->
		at--;
		if
		:: waits(at) -> watched[me] = 1 << (entry[at] - 1); h = 1;
#ifdef MUTANT_SECOND_PEEKS
			/* Only the second does. */
			turn_clock[me] = true;
			do
			:: at > m_first ->
				at--;
				if
				:: waits(at) -> turn_clock[me] = false
				:: else
				fi
			:: else -> break
			od
#else
			turn_clock[me] = true
#endif
		:: else
		fi
	od;
	if
	:: h == 0 ->
		i = 0;
		do
		:: i < N ->
			if
			:: m_tok[i] != 0 ->
				watched[me] = watched[me] | (1 << i);
				lease_clock[me] = lease_clock[me] || m_lease[i] != 0;
				/* hf_queue_unclaimed */
				turn_clock[me] = turn_clock[me] || (m_tik[i] != 0 && message[i] == m_tok[i])
			:: else
			fi;
			i++
		:: i == N -> break
		od;
		i = 0
	:: else
	fi;
#ifdef MUTANT_NO_WATCH
	watched[me] = 0;
#endif
	h = 0;
	at = 0
}

#define dead(p, q)    ((watched[p] >> (q) & 1) && !alive[q])
#define unread(q)     (tok[q] != 0 && message[q] == tok[q] && stopped[q])
#define overdue(q)    (tok[q] != 0 && (!alive[q] || lease[q] == 2 || unread(q)))
#if N == 2
#define any_dead(p)   (dead(p, 0) || dead(p, 1))
#define any_overdue   (overdue(0) || overdue(1) || (tok[0] == 0 && tok[1] == 0))
#define any_expired   (lease[0] == 2 || lease[1] == 2)
#elif N == 3
#define any_dead(p)   (dead(p, 0) || dead(p, 1) || dead(p, 2))
#define any_overdue   (overdue(0) || overdue(1) || overdue(2) || (tok[0] == 0 && tok[1] == 0 && tok[2] == 0))
#define any_expired   (lease[0] == 2 || lease[1] == 2 || lease[2] == 2)
#else
#define any_dead(p)   (dead(p, 0) || dead(p, 1) || dead(p, 2) || dead(p, 3))
#define any_overdue   (overdue(0) || overdue(1) || overdue(2) || overdue(3) || \
		       (tok[0] == 0 && tok[1] == 0 && tok[2] == 0 && tok[3] == 0))
#define any_expired   (lease[0] == 2 || lease[1] == 2 || lease[2] == 2 || lease[3] == 2)
#endif

/* A clock ends a sleep only where the look makes a difference. */
#define woken(p)                                                                  \
	(bell[p] || message[p] != 0 || any_dead(p) || (lease_clock[p] && any_expired) || \
	 (turn_clock[p] && (any_overdue || tok[p] != 0)))

proctype process(byte me) provided (runs(me))
{
	byte rounds, mine, got, at, i, k, h, last, given;
	bool deadline, expired, taken, rob, fits, revoked;

#if ORDER
	(me == 0 || begun[me - 1] || !runs(me - 1));
#endif
	do
	:: rounds == ROUNDS -> break
	:: rounds < ROUNDS ->
		atomic {
			mine = 0;
			got = 0;
			expired = false;
			if
			:: wants_lease[me] = false
			:: LEASES -> wants_lease[me] = true
			fi;
#ifdef PATTERN
			shared[me] = PATTERN >> me & 1;
#else
			if
			:: shared[me] = false
			:: SHARED -> shared[me] = true
			fi;
#endif
			if
			:: deadline = false
			:: DEADLINES -> deadline = true
			fi
		}
look:
		take_guard(me);
		/* enter_or_queue: granted meanwhile, or the place is lost? */
		d_step {
			if
			:: was_granted(me) -> got = m_tok[me]
			:: !was_granted(me) && mine != 0 && !has_place(me) ->
				channel[me] = 0;
				message[me] = 0;
				bell[me] = false;
				mine = 0
			:: else
			fi
		}
		if
		:: got != 0 -> d_step { retell(me) }; goto found
		:: else
		fi;
		/* try_enter: reap the dead and the expired... */
		d_step { admits(me, fits) }
		if
		:: !fits ->
			h = 0;
			do
			:: h < N && m_tok[h] != 0 && !alive[h] ->
				d_step { m_tok[h] = 0; m_tik[h] = 0; m_lease[h] = 0; dirty = true; h++ }
			:: h < N && m_tok[h] != 0 && alive[h] && m_lease[h] == 2 ->
#ifndef MUTANT_EXPIRED_UNREAD
				/* A waiter that never noticed that it was given the lock loses nothing. */
				take_back(taken);
#endif
				d_step {
					rob = rob || !taken;
					taken = false;
					m_tok[h] = 0; m_tik[h] = 0; m_lease[h] = 0; dirty = true; h++
				}
			:: h < N && !(m_tok[h] != 0 && (!alive[h] || m_lease[h] == 2)) -> h++
			:: h == N -> break
			od;
			atomic { h = 0; admits(me, fits) }
		:: else
		fi;
		/* ...and revoke what was not noticed long enough. */
		if
		:: !fits ->
			h = 0;
			do
			:: h < N && m_tok[h] != 0 && m_tik[h] != 0 && message[h] == m_tok[h] ->
				if
				:: true ->
#ifdef MUTANT_REVOKE
					bell[h] = true;
					taken = true;
#else
					take_back(taken);
#endif
					d_step {
						if
						:: taken ->
							m_tok[h] = 0; m_tik[h] = 0; m_lease[h] = 0;
							taken = false;
							revoked = true;
							dirty = true
						:: else
						fi;
						h++
					}
				:: !stopped[h] -> h++	/* not that long ago */
				fi
			:: h < N && !(m_tok[h] != 0 && m_tik[h] != 0 && message[h] == m_tok[h]) -> h++
			:: h == N -> break
			od;
			h = 0;
			if
			:: revoked -> pass_over_stopped()
			:: else
			fi;
			atomic { revoked = false; admits(me, fits) }
		:: else
		fi;
		if
		:: fits ->
			d_step {
				/* Is anybody living before us? */
				at = m_first;
				do
				:: at < next && !waits(at) -> at++
				:: else -> break
				od;
				fits = (mine == 0 && at >= next);
				at = 0;
				/* grant_first: an exclusive lock that is free, and we are the first. */
				i = 0;
				k = (mine != 0 && mine == m_first && !shared[me]);
				do
				:: i < N -> k = k && m_tok[i] == 0; i++
				:: i == N -> break
				od;
				i = 0
			}
			if
			:: fits ->
				/* grant */
				d_step { fits = false; add(me, 0); got = m_tok[me] }
				write_record();
				goto found
			:: !fits && k ->
				k = 0;
				if
				:: wants_lease[me] -> nudge(mine)
				:: else
				fi;
				d_step { m_first++; add(me, mine); got = m_tok[me] }
				write_record();
				goto found
			:: !fits && !k -> admit()
			fi;
			d_step {
				if
				:: was_granted(me) -> got = m_tok[me]
				:: else
				fi
			}
			if
			:: got != 0 -> goto found
			:: else
			fi
		:: else
		fi;
		if
		:: expired -> finish(); goto give_up
		:: else
		fi;
		if
		:: mine == 0 && next < TICKETS ->
			/*
			 * join: the first to wait sweeps; then the entry, the record, and only
			 * then the channel, so that none is left by a process that dies here.
			 */
			if
			:: m_first == next -> d_step { sweep(me) }
			:: else
			fi;
			entry[next] = ID(me);
			mine = next;
			d_step { next++; dirty = true }
			write_record();
			d_step {
				channel[me] = mine;
				message[me] = 0;
				bell[me] = false
			}
		:: mine == 0 && next >= TICKETS -> finish(); break	/* the model's bound */
		:: mine != 0
		fi;
		d_step { plan_watch(me) }
		finish();
		d_step { asleep[me] = true; begun[me] = true };
		/* hf_attempt_sleep; the deadline counts only where there is nothing else. */
		atomic {
			if
			:: woken(me)
			:: deadline -> expired = true
			fi;
			asleep[me] = false
		}
		/* hf_attempt_read_channel: the process that reads the token has the lock. */
		d_step {
			bell[me] = false;
			if
			:: message[me] != 0 ->
				got = message[me];
				message[me] = 0;
				in_hand[me] = got;
				/* L1: what can be read is what the record says. */
				assert(tok[me] == got)
			:: else
			fi
		}
		if
		:: got != 0 -> goto have
		:: else -> goto look
		fi;

give_up:
		take_guard(me);
		/* The channel, the entry, the record; what was given to us goes on. */
		d_step { message[me] = 0; channel[me] = 0 }
		d_step {
			if
			:: was_granted(me) -> m_tok[me] = 0; m_tik[me] = 0; m_lease[me] = 0; dirty = true
			:: !was_granted(me) && has_place(me) -> entry[mine] = 0
			:: else
			fi
		}
		d_step { retell(me) }
		admit();
		nudge(mine);
		finish();
		goto next_round;

found:		/*
		 * By looking: the token may still be in the channel, from where a revoke would take it
		 * back. So it is read before the guard is left.
		 */
#ifndef MUTANT_UNREAD
		message[me] = 0;
#endif
		in_hand[me] = got;
		finish();
have:		skip;
		/* L1, L4: nobody else has it beside us who has not lost it as it may. */
		d_step {
			i = 0;
			do
			:: i < N ->
				assert(i == me || believes[i] == 0 || robbed[i] || !alive[i] || tok[me] != got ||
				       (shared[i] && shared[me]));
				i++
			:: i == N -> break
			od;
			i = 0;
			believes[me] = got;
			begun[me] = true;
			/* Broken or run out since it was read: then it is known as such. */
			robbed[me] = (tok[me] != got)
		}
		/* hf_lock_guarded: refused, or in the order of the tokens (L5). */
		atomic {
			guard == NOBODY;
			if
			:: tok[me] == got ->
				assert(got >= acted);
				if
				:: !shared[me] -> acted = got
				:: else
				fi
			:: else -> assert(robbed[me])	/* L4: lost only as it may */
			fi
		}
#if EXITS
		/* The exec closes the channel; the exit of the command is the release. */
		d_step { channel[me] = 0; message[me] = 0; bell[me] = false };
		d_step { believes[me] = 0; in_hand[me] = 0; done[me] = true; alive[me] = false };
		goto gone;
#endif
		/* hf_lock_release */
		take_guard(me);
		believes[me] = 0;
		if
		:: m_tok[me] == got ->
			d_step { m_tok[me] = 0; m_tik[me] = 0; m_lease[me] = 0; dirty = true }
			admit()
		:: else
		fi;
		d_step { channel[me] = 0; message[me] = 0; bell[me] = false; in_hand[me] = 0 }
		finish();
next_round:	skip;
		d_step { got = 0; mine = 0; expired = false; robbed[me] = false; rounds++ }
	od;
	done[me] = true;
gone:	skip
}

/* hf_lock_break, and a release by token from another process. */
proctype breaker() provided (runs(BREAKER))
{
	byte at, i, k, h, last, given;
	bool rob, taken, fits;

	take_guard(BREAKER);
	d_step {
		fits = false;
		i = 0;
		do
		:: i < N -> fits = fits || m_tok[i] != 0; i++
		:: i == N -> break
		od;
		i = 0
	}
	if
	:: fits ->
		fits = false;
#ifndef MUTANT_SILENT_BREAK
		nudge(0);
#endif
		h = 0;
		do
		:: h < N ->
			if
			:: m_tok[h] != 0 ->
#ifndef MUTANT_BROKEN_UNREAD
				take_back(taken);
#endif
				d_step { taken = false; m_tok[h] = 0; m_tik[h] = 0; m_lease[h] = 0; dirty = true }
			:: else
			fi;
			h++
		:: h == N -> break
		od;
		atomic { h = 0; rob = true }
		admit()
	:: else
	fi;
	finish();
	done[BREAKER] = true
}

/* -- the world ---------------------------------------------------------------------- */

active proctype world()
{
	byte p, k;

	atomic {
		p = 0;
		do
		:: p < N -> alive[p] = true; run process(p); p++
		:: p == N -> break
		od;
		alive[BREAKER] = true;
		if
		:: BREAKS -> run breaker()
		:: !BREAKS -> done[BREAKER] = true
		fi;
		p = 0
	}
	do
	:: crashes < CRASHES ->
		/* SIGKILL, anywhere; the kernel lets go of the flock, and the memory is gone. */
		atomic {
			if
			:: alive[0] && !done[0] -> p = 0
			:: alive[1] && !done[1] -> p = 1
#if N > 2
			:: alive[2] && !done[2] -> p = 2
#endif
#if N > 3
			:: alive[3] && !done[3] -> p = 3
#endif
#if BREAKS
			:: alive[BREAKER] && !done[BREAKER] -> p = BREAKER
#endif
			fi;
			crashes++;
			alive[p] = false;
			if
			:: guard == ID(p) -> forget_record(); guard = NOBODY
			:: else
			fi;
			if
			:: p < N ->
				asleep[p] = false; message[p] = 0; bell[p] = false; believes[p] = 0;
				in_hand[p] = 0
			:: else
			fi;
			p = 0
		}
	:: stops < STOPS ->
		/* SIGSTOP, but not in the guard: then the others wait for the guard, as they may. */
		atomic {
			if
			:: runs(0) && !done[0] && guard != ID(0) -> p = 0
			:: runs(1) && !done[1] && guard != ID(1) -> p = 1
#if N > 2
			:: runs(2) && !done[2] && guard != ID(2) -> p = 2
#endif
#if N > 3
			:: runs(3) && !done[3] && guard != ID(3) -> p = 3
#endif
			fi;
			stops++;
			stopped[p] = true;
			p = 0
		}
	:: STOPS && stopped[0] -> stopped[0] = false
	:: STOPS && stopped[1] -> stopped[1] = false
#if N > 2
	:: STOPS && stopped[2] -> stopped[2] = false
#endif
#if N > 3
	:: STOPS && stopped[3] -> stopped[3] = false
#endif
	:: atomic { LEASES && guard == NOBODY && lease[0] == 1 -> lease[0] = 2 }
	:: atomic { LEASES && guard == NOBODY && lease[1] == 1 -> lease[1] = 2 }
#if N > 2
	:: atomic { LEASES && guard == NOBODY && lease[2] == 1 -> lease[2] = 2 }
#endif
	:: break
	od;
	/* No more harm is done, but clocks go on. */
end:	do
	:: atomic { LEASES && guard == NOBODY && lease[0] == 1 -> lease[0] = 2 }
	:: atomic { LEASES && guard == NOBODY && lease[1] == 1 -> lease[1] = 2 }
#if N > 2
	:: atomic { LEASES && guard == NOBODY && lease[2] == 1 -> lease[2] = 2 }
#endif
	od
}

/*
 * Nothing moves any more: then nobody who runs is asleep, unless a stopped process has the lock, and
 * no lease. That is what "no wake-up is lost" means. (Killed between taking a token out of a stopped
 * waiter's channel and writing the record, a process leaves that waiter as if it had read it.)
 */
#define stuck(p)    (runs(p) && !done[p])
#define holds_up(p) (tok[p] != 0 && alive[p] && stopped[p] && lease[p] == 0 && \
		     (in_hand[p] == tok[p] || (crashes > 0 && message[p] == 0)))
#if N == 2
#define held_up     (holds_up(0) || holds_up(1))
#elif N == 3
#define held_up     (holds_up(0) || holds_up(1) || holds_up(2))
#else
#define held_up     (holds_up(0) || holds_up(1) || holds_up(2) || holds_up(3))
#endif

active proctype checker()
{
end:	do
	:: timeout ->
		assert(!stuck(0) || held_up);
		assert(!stuck(1) || held_up);
		/* A process that lives and is done has no channel left. */
		assert(!(alive[0] && done[0] && channel[0] != 0));
		assert(!(alive[1] && done[1] && channel[1] != 0));
#if N > 2
		assert(!stuck(2) || held_up);
#endif
#if N > 3
		assert(!stuck(3) || held_up);
#endif
		break
	od
}
