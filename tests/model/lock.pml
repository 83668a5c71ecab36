/*
 * model/lock.pml - the protocol of src/lock, for spin. docs/MODEL.md says which step
 * is which function, what is left out, and how it is run (tests/model/run).
 *
 * One exclusive lock, N processes that take it, and one that breaks it. A step here is
 * what the kernel does in one: a process may be killed or stopped between any two.
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

#define TICKETS 10
#define NOBODY  0
#define BREAKER N
#define ID(p)   ((p) + 1)	/* in the record and in the guard; 0 is nobody */

/* The kernel's: who lives, who runs, the flock. */
bool alive[N + 1];
bool stopped[N + 1];
byte guard;

/* The record. */
byte holder, token, ticket;
byte lease;		/* of the holder: 0 none, 1 running, 2 run out */
byte first = 1, next = 1;

/* The queue's entries, 0: gone. What the entry says of the lease it wants. */
byte entry[TICKETS];
bool wants_lease[N];

/* Channels: whose it is, and what is in it. Any number of "look again" are one. */
byte channel[N];	/* ticket, 0: removed */
byte message[N];	/* an unread token */
bool bell[N];		/* "look again" */

/* What a sleeper sleeps on. */
bool asleep[N];
byte watched[N];	/* ID of a process */
bool lease_clock[N];
bool turn_clock[N];

/* What nobody but the checker knows. */
byte believes[N];	/* the token with which it came back from acquire */
bool robbed[N];		/* lost it by lease or break, as it may */
byte highest;		/* token given */
byte acted;		/* highest token of a guarded action */
bool done[N + 1];
byte crashes, stops;

#define runs(p) (alive[p] && !stopped[p])

/* -- under the guard ------------------------------------------------------------- */

inline take_guard(me)
{
	atomic { guard == NOBODY -> guard = ID(me) }
}

inline drop_guard()
{
	guard = NOBODY
}

/* hf_record_add and hf_guard_write: tokens rise (L2). */
inline publish(h, t, l)
{
	token++;
	assert(token > highest);
	highest = token;
	holder = h;
	ticket = t;
	lease = l
}

/* As the record is written: is its holder taken out without having released? */
inline note_loss()
{
	if
	:: rob && holder != NOBODY && believes[holder - 1] == token -> robbed[holder - 1] = true
	:: else
	fi;
	rob = false
}

/*
 * hf_queue_take_back: one read of the channel. The waiter may have been faster; else it will
 * look, and find that it has to queue again.
 */
inline take_back(taken)
{
	taken = false;
	if
	:: holder != NOBODY && ticket != 0 && message[holder - 1] == token &&
	   channel[holder - 1] == ticket ->
		message[holder - 1] = 0;
		bell[holder - 1] = true;
		taken = true
	:: else
	fi
}

/* choose(): the first whose channel has a reader; the record is not yet written. */
inline choose(at)
{
	at = first;
	do
	:: at < next && entry[at] != 0 && alive[entry[at] - 1] && channel[entry[at] - 1] == at -> break
	:: at < next && !(entry[at] != 0 && alive[entry[at] - 1] && channel[entry[at] - 1] == at) ->
		entry[at] = 0;
		at++
	:: at >= next -> break
	od
}

/* hf_queue_nudge: the first living one from there on is told to look. */
inline nudge(from, i)
{
	i = (from > first -> from : first);
	do
	:: i < next && entry[i] != 0 && alive[entry[i] - 1] ->
		if
		:: channel[entry[i] - 1] == i -> bell[entry[i] - 1] = true
		:: else
		fi;
		break
	:: i < next && !(entry[i] != 0 && alive[entry[i] - 1]) -> i++
	:: i >= next -> break
	od;
	i = 0
}

/*
 * hf_queue_admit: the record has no holder any more, or will not have one when it is
 * written. Chooses, tells the one behind of a lease, writes, sends.
 */
inline admit(at, i, who)
{
	d_step {
		choose(at);
		if
		:: at < next -> who = entry[at]
		:: else -> who = NOBODY
		fi;
		if
		:: who != NOBODY && wants_lease[who - 1] -> nudge(at + 1, i)
		:: else
		fi
	}
#ifdef MUTANT_RING_EARLY
	if
	:: who != NOBODY -> message[who - 1] = token + 1
	:: else
	fi;
#endif
	d_step {
		note_loss();
		first = at;
		if
		:: who != NOBODY ->
			first = at + 1;
			publish(who, at, wants_lease[who - 1])
		:: else ->
			holder = NOBODY;
			ticket = 0;
			lease = 0
		fi
	}
#ifndef MUTANT_RING_EARLY
	d_step {
		if
		:: who != NOBODY && alive[who - 1] && channel[who - 1] == at ->
			message[who - 1] = token
		:: else
		fi;
		who = NOBODY;
		at = 0
	}
#else
	who = NOBODY;
	at = 0
#endif
}

/*
 * hf_channel_recall with a record: channels of the dead are removed, others but the
 * holder's are told to look.
 */
inline sweep(me, i)
{
	i = 0;
	do
	:: i < N ->
		if
		:: i != me && channel[i] != 0 && !alive[i] -> channel[i] = 0
		:: i != me && channel[i] != 0 && alive[i] && !(holder == ID(i) && ticket == channel[i]) ->
			bell[i] = true
		:: else
		fi;
		i++
	:: i == N -> break
	od;
	i = 0
}

/* -- one process ------------------------------------------------------------------ */

/*
 * Found by looking: the token may still be in the channel, from where a revoke would
 * take it back. So it is read before the guard is dropped.
 */
inline leave_look(me)
{
#ifndef MUTANT_UNREAD
	message[me] = 0;
#endif
	guard = NOBODY
}

#define was_granted(p) (mine != 0 && holder == ID(p) && ticket == mine)
#define has_place(p)   (mine >= first && mine < next && entry[mine] == ID(p))

/* hf_attempt_watch: the waiter before us, else the holder. */
inline plan_watch(me, at)
{
	watched[me] = NOBODY;
	lease_clock[me] = false;
	turn_clock[me] = false;
	at = mine;
	do
	:: at > first && entry[at - 1] != 0 && alive[entry[at - 1] - 1] ->
		watched[me] = entry[at - 1];
		turn_clock[me] = true;
		break
	:: at > first && !(entry[at - 1] != 0 && alive[entry[at - 1] - 1]) -> at--
	:: at <= first -> break
	od;
	if
	:: watched[me] == NOBODY ->
		watched[me] = holder;
		lease_clock[me] = (lease != 0);
		/* hf_queue_unclaimed */
		turn_clock[me] = (ticket != 0 && holder != NOBODY && message[holder - 1] == token)
	:: else
	fi;
#ifdef MUTANT_NO_WATCH
	watched[me] = NOBODY;
#endif
	at = 0
}

/* The slow clock ends a sleep only where it makes a difference: else it only looks. */
#define turn_passed (holder != NOBODY && message[holder - 1] == token && stopped[holder - 1])

#define woken(p)                                                                        \
	(bell[p] || message[p] != 0 || (watched[p] != NOBODY && !alive[watched[p] - 1]) || \
	 (lease_clock[p] && lease == 2) || (turn_clock[p] && turn_passed))

proctype process(byte me) provided (runs(me))
{
	byte rounds, mine, got, at, i, who;
	bool deadline, expired, revoke, rob;

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
			if
			:: deadline = false
			:: DEADLINES -> deadline = true
			fi
		}
look:
		take_guard(me);
		/* look_once: granted meanwhile, or the place is lost? */
		d_step {
			if
			:: was_granted(me) -> got = token
			:: !was_granted(me) && mine != 0 && !has_place(me) ->
				channel[me] = 0;
				message[me] = 0;
				bell[me] = false;
				mine = 0
			:: else
			fi
		}
		if
		:: got != 0 -> leave_look(me); goto have
		:: else
		fi;
		/* try_enter: reap, else revoke. */
		atomic {
			revoke = false;
			if
			:: holder != NOBODY && alive[holder - 1] && lease != 2 && ticket != 0 &&
			   message[holder - 1] == token && channel[holder - 1] == ticket ->
				/* Long enough ago? */
				if
				:: revoke = true
				:: revoke = turn_passed
				fi
			:: else
			fi
		}
		if
		:: revoke ->
			d_step {
#ifdef MUTANT_REVOKE
				bell[holder - 1] = true
#else
				take_back(revoke)
#endif
			}
		:: else
		fi;
		if
		:: revoke || holder == NOBODY || !alive[holder - 1] || lease == 2 ->
			d_step {
				rob = (lease == 2 && !revoke);
				revoke = false
			}
#ifndef MUTANT_EXPIRED_UNREAD
			/* hf_record_reap: who never noticed that it was given the lock loses nothing. */
			d_step {
				if
				:: rob -> take_back(revoke); rob = !revoke; revoke = false
				:: else
				fi
			}
#endif
			d_step {
				/* Is anybody living before us? */
				at = first;
				do
				:: at < next && !(entry[at] != 0 && alive[entry[at] - 1]) -> at++
				:: else -> break
				od;
				who = (mine == 0 && at >= next -> ID(me) : NOBODY);
				at = 0
			}
			if
			:: who != NOBODY ->
				/* grant */
				d_step {
					who = NOBODY;
					note_loss();
					publish(ID(me), 0, wants_lease[me]);
					got = token
				}
				drop_guard();
				goto have
			:: else -> admit(at, i, who)
			fi;
			d_step {
				if
				:: was_granted(me) -> got = token
				:: else
				fi
			}
			if
			:: got != 0 -> leave_look(me); goto have
			:: else
			fi
		:: else
		fi;
		if
		:: expired -> drop_guard(); goto give_up
		:: else
		fi;
		if
		:: mine == 0 && next < TICKETS ->
			/*
			 * join: whoever is the first to wait sweeps; then the entry, the record,
			 * and only then the channel, so that none is left by who dies here.
			 */
			if
			:: first == next -> d_step { sweep(me, i) }
			:: else
			fi;
			entry[next] = ID(me);
			d_step {
				mine = next;
				next++
			}
			d_step {
				channel[me] = mine;
				message[me] = 0;
				bell[me] = false
			}
		:: mine == 0 && next >= TICKETS -> drop_guard(); break	/* the model's bound */
		:: mine != 0
		fi;
		d_step {
			plan_watch(me, at);
			guard = NOBODY;
			asleep[me] = true
		}
		/* hf_attempt_sleep; the deadline counts only where there is nothing else. */
		atomic {
			if
			:: woken(me)
			:: deadline -> expired = true
			fi;
			asleep[me] = false
		}
		/* hf_attempt_read_channel: whoever reads the token has the lock. */
		d_step {
			bell[me] = false;
			if
			:: message[me] != 0 ->
				got = message[me];
				message[me] = 0;
				/* L1: what can be read is what the record says. */
				assert(got == token && holder == ID(me))
			:: else
			fi
		}
		if
		:: got != 0 -> goto have
		:: else -> goto look
		fi;

give_up:
		take_guard(me);
		if
		:: was_granted(me) ->
			/* What was given to us goes on; the channel goes first, then the record. */
			d_step { message[me] = 0; channel[me] = 0 }
			admit(at, i, who)
		:: !was_granted(me) ->
			/* hf_queue_leave: the channel, the entry, the record. */
			d_step { message[me] = 0; channel[me] = 0 }
			d_step {
				if
				:: has_place(me) -> entry[mine] = 0
				:: else
				fi
			}
			if
			:: holder == NOBODY -> admit(at, i, who)
			:: else
			fi
		fi;
		d_step { nudge(mine + 1, i); guard = NOBODY }
		goto next_round;

have:		skip;
		/* L1, L4: nobody else has it who has not lost it as it may. */
		d_step {
			i = 0;
			do
			:: i < N ->
				assert(i == me || believes[i] == 0 || robbed[i] || !alive[i] ||
				       got != token || holder != ID(me));
				i++
			:: i == N -> break
			od;
			i = 0;
			believes[me] = got;
			/* Broken or run out since it was read: then it is known as such. */
			robbed[me] = (got != token || holder != ID(me))
		}
		/* hf_lock_guarded: refused, or in the order of the tokens (L5). */
		atomic {
			guard == NOBODY;
			if
			:: holder == ID(me) && token == got ->
				assert(got >= acted);
				acted = got
			:: else -> assert(robbed[me])	/* L4: lost only as it may */
			fi
		}
		/* hf_lock_release */
		take_guard(me);
		believes[me] = 0;
		if
		:: holder == ID(me) && token == got -> admit(at, i, who)
		:: else
		fi;
		d_step { channel[me] = 0; message[me] = 0; bell[me] = false }
		drop_guard();
next_round:	skip;
		d_step { got = 0; mine = 0; expired = false; robbed[me] = false; rounds++ }
	od;
	done[me] = true
}

/* hf_lock_break, and a release by token from another process. */
proctype breaker() provided (runs(BREAKER))
{
	byte at, i, who;
	bool rob, taken;

	take_guard(BREAKER);
	if
	:: holder != NOBODY ->
#ifndef MUTANT_BROKEN_UNREAD
		d_step { take_back(taken); taken = false }
#endif
#ifndef MUTANT_SILENT_BREAK
		d_step { nudge(1, i) }
#endif
		rob = true;
		admit(at, i, who)
	:: else
	fi;
	drop_guard();
	done[BREAKER] = true
}

/* -- the world ---------------------------------------------------------------------- */

active proctype world()
{
	byte p;

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
		/* SIGKILL, anywhere; the kernel lets go of the flock. */
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
			:: guard == ID(p) -> guard = NOBODY
			:: else
			fi;
			if
			:: p < N -> asleep[p] = false; message[p] = 0; bell[p] = false; believes[p] = 0
			:: else
			fi;
			p = 0
		}
	:: stops < STOPS ->
		/* SIGSTOP, but not in the guard: that ends with HF_E_TIMEOUT, not in a wait. */
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
	:: atomic { LEASES && lease == 1 -> lease = 2 }
	:: break
	od;
	/* No more harm is done, but clocks go on. */
end:	do
	:: atomic { LEASES && lease == 1 -> lease = 2 }
	od
}

/*
 * Nothing moves any more: then nobody who runs is asleep, unless a stopped process
 * has the lock and no lease. That is what "no wake-up is lost" means.
 */
#define stuck(p) (runs(p) && !done[p])
#define held_up  (holder != NOBODY && alive[holder - 1] && stopped[holder - 1] && lease == 0 && \
		  message[holder - 1] == 0)

active proctype checker()
{
end:	do
	:: timeout ->
		assert(!stuck(0) || held_up);
		assert(!stuck(1) || held_up);
		/* Who lives and is done has no channel left. */
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
