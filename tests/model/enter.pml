/*
 * model/enter.pml - plan enter with its watcher, beside a second enter, a commit and a removal (src/plan), for spin.
 * docs/MODEL.md says which step is which function, what is left out, and how it is run.
 *
 * One plan with one overlay. Each enter is a caller, its watcher, its command, and one process (kid) that the
 * command may leave behind. A step is one system call that another process can notice.
 */
#ifndef ENTERS
#define ENTERS 1	/* 1 or 2, at any time */
#endif
#ifndef VERB
#define VERB COMMIT	/* what another process does meanwhile */
#endif
#ifndef CALLER_KILLS
#define CALLER_KILLS 0	/* plan enter is killed, so often */
#endif
#ifndef WATCHER_KILLS
#define WATCHER_KILLS 0
#endif

#define COMMIT 1
#define REMOVE 2

#define FREE 0
#define VERBS 3		/* ID of the process of VERB, as holder of the plan's lock; enters are 1 and 2 */

byte lock;		/* the plan's */
bool marker;		/* of the kernel, in the work directory: not settled */
bool noted;		/* the file says in which namespaces they are */
byte anchor;		/* and whose watcher is there: ID */
bool reads[2];		/* that enter has the file locked: its caller and its watcher share that */
byte sole;		/* ID of a watcher that has it locked for itself */
bool mounted[2];	/* namespaces of that enter live; [1] only if it did not join */
bool removed;		/* the sandbox's directory is gone */
bool committing;

/* Processes. */
bool caller[2], watcher[2], command[2], kid[2];
bool holds_file[2], watcher_file[2];	/* which of the two has the file's descriptor */
bool ready[2];		/* the command waits for the plan's lock to be given back */
bool go[2];
bool told[2];		/* the watcher's word that all is at rest */
bool joined[2];
bool is_over[2];
bool caller_killed[2], watcher_killed[2];
byte caller_kills, watcher_kills;

#define inside(e)   (command[e] || kid[e])
#define anybody     (inside(0) || inside(1))
#define other(e)    (1 - (e))

/* A process inside that can write. */
#define writes(e)   ((command[e] && go[e] && ready[e]) || kid[e])

/* What must hold at every instant: a process that can write has its marker, and is in nobody's commit. */
inline check_writers()
{
	assert(!(writes(0) || writes(1)) || (marker && !committing && !removed))
}

/* The descriptor's lock goes with the last of its two owners. */
inline drop_file(e, who)
{
	who = false;
	if
	:: !holds_file[e] && !watcher_file[e] -> reads[e] = false
	:: else
	fi
}

/* Looking at the plan with its lock: 0 unused, 1 an enter is inside, 2 processes that no watcher looks after. */
inline look(ret)
{
	d_step {
		if
		:: (reads[0] || reads[1] || sole) -> ret = 1
#ifdef MUTANT_NO_STRAYS
		:: else -> ret = 0
#else
		:: else ->
			if
			:: marker && noted && anybody -> ret = 2
			:: else -> ret = 0
			fi
#endif
		fi
	}
}

inline settle_here() { d_step { marker = false } }

proctype enter(byte e)
{
	byte seen;
	{
		atomic { lock == FREE -> lock = e + 1 };
		if
		:: removed -> goto give_up
		:: else
		fi;
again:		look(seen);
		if
		:: seen == 0 ->
			settle_here()
		:: seen != 0 ->
#ifndef MUTANT_JOIN_UNLOCKED
			/* Held from before the look to the end: what is found does not settle meanwhile. */
			if
			:: atomic { !sole -> reads[e] = true; holds_file[e] = true }
			:: atomic { sole -> goto give_up }	/* the last one is on its way out: waits, in the end gives up */
			fi;
#endif
			/* open_inhabited: a process whose namespaces can be opened */
			if
			:: d_step { noted && (watcher[0] || watcher[1] || anybody) -> joined[e] = true }
			:: else ->
				d_step { drop_file(e, holds_file[e]) };
				goto give_up
			fi
		fi;
#ifdef MUTANT_UNLOCK_EARLY
		lock = FREE;
#endif
		/* hf_in_lock */
		if
		:: atomic { !sole -> reads[e] = true; holds_file[e] = true }
		:: else -> goto give_up
		fi;
		/* hf_watch_start */
		atomic { watcher_file[e] = true; watcher[e] = true; run watch(e) };
		(ready[e] || !watcher[e]);
		d_step {
			if
			:: lock == e + 1 -> lock = FREE
			:: else
			fi;
			go[e] = true;
			drop_file(e, holds_file[e]);
			check_writers()
		};
		(told[e] || !watcher[e]);
		if
		:: told[e] ->
			/* A caller that was told does not find the plan in use by itself. */
			assert(!reads[e] && sole != e + 1)
		:: else	/* the strays are ended by plan recover; see VERB */
		fi;
		goto out;
give_up:	skip;
		d_step {
			if
			:: lock == e + 1 -> lock = FREE
			:: else
			fi
		};
out:		skip;
		d_step { caller[e] = false; is_over[e] = true }
	} unless { !caller[e] }
}

proctype watch(byte e)
{
	{
		/* The mount, with its marker; or setns. */
		d_step {
			mounted[e] = true;
			if
			:: !joined[e] -> marker = true
			:: else
			fi
		};
		command[e] = true;
#ifndef MUTANT_NOTED_LATE
		d_step { noted = true; anchor = e + 1 };
#endif
		/* PDEATHSIG, and then the look whether it came too late; see strike_watcher */
		d_step { ready[e] = true; check_writers() };
#ifdef MUTANT_NOTED_LATE
		d_step { !command[e] && !kid[e] -> noted = true; anchor = e + 1 };
#endif
		/* Until the last child is reaped; a dead caller makes it kill them, again and again. */
		do
		:: !inside(e) -> break
#ifndef MUTANT_CALLER_UNWATCHED
		:: d_step { !caller[e] && !is_over[e] && command[e] -> command[e] = false }
		:: d_step { !caller[e] && !is_over[e] && !command[e] && kid[e] -> kid[e] = false }
#endif
		od;
#ifdef MUTANT_TOLD_EARLY
		told[e] = true;
#endif
		/* hf_helper_rest: the read lock becomes the sole one, or stays */
		if
		:: d_step { !reads[other(e)] && !sole && reads[e] -> sole = e + 1; reads[e] = false }
#ifdef MUTANT_SETTLED_BESIDE_OTHERS
		:: d_step { reads[other(e)] -> sole = e + 1; reads[e] = false }
#endif
		:: else -> goto rest
		fi;
#ifndef MUTANT_STRAYS_FORGOTTEN
		/* Others were in these namespaces: is a process of theirs left that no watcher looks after? */
		if
		:: d_step { (joined[e] || anchor != e + 1) && anybody -> sole = FREE };
			goto rest
		:: else
		fi;
#endif
		d_step { marker = false; check_writers() };
		noted = false;
		sole = FREE;
rest:		skip;
		d_step { drop_file(e, watcher_file[e]) };
		told[e] = true;
		watcher[e] = false
	} unless { !watcher[e] }
}

/* The command and what it leaves. A step of theirs is a write. Those of a caller that was killed never end by themselves. */
proctype life(byte e)
{
end:	do
	:: d_step { command[e] && ready[e] && go[e] && !kid[e] && !is_over[e] -> kid[e] = true; check_writers() }
	:: d_step { command[e] && ready[e] && go[e] && !caller_killed[e] -> command[e] = false }
	:: d_step { kid[e] && !caller_killed[e] -> check_writers(); kid[e] = false }
	od
}

/* plan commit, or plan rm, at any time. */
proctype verb()
{
	byte seen;

	atomic { lock == FREE -> lock = VERBS };
	look(seen);
#if VERB == REMOVE
	/* hf_plan_end_strays */
	if
	:: seen == 2 ->
		d_step { kid[0] = false; kid[1] = false; command[0] = false; command[1] = false };
		look(seen)
	:: else
	fi;
#endif
	if
	:: seen == 0 ->
		settle_here();
		d_step {
#if VERB == COMMIT
			committing = true;
#else
			removed = true;
#endif
			check_writers()
		};
		committing = false
	:: else	/* in use */
	fi;
	lock = FREE
}

inline strike_caller(e)
{
	caller[e] = false;
	caller_killed[e] = true;
	caller_kills++;
	if
	:: lock == e + 1 -> lock = FREE
	:: else
	fi;
	go[e] = true;	/* its end of the pipe is closed */
	drop_file(e, holds_file[e]);
	check_writers()
}

/* PDEATHSIG takes the command; one that was not ready yet finds another parent, and ends. */
inline strike_watcher(e)
{
	watcher[e] = false;
	watcher_killed[e] = true;
	watcher_kills++;
#ifdef MUTANT_PARENT_UNPROVEN
	command[e] = command[e] && !ready[e];
	ready[e] = ready[e] || command[e];
#else
	command[e] = false;
#endif
	if
	:: sole == e + 1 -> sole = FREE
	:: else
	fi;
	drop_file(e, watcher_file[e]);
	check_writers()
}

active proctype world()
{
	atomic {
		caller[0] = true;
		run enter(0);
		run life(0);
		if
		:: ENTERS == 2 -> caller[1] = true; run enter(1); run life(1)
		:: else
		fi;
		run verb()
	}
	do
	:: d_step { caller_kills < CALLER_KILLS && caller[0] && !is_over[0] -> strike_caller(0) }
	:: d_step { caller_kills < CALLER_KILLS && caller[1] && !is_over[1] -> strike_caller(1) }
	:: d_step { watcher_kills < WATCHER_KILLS && watcher[0] -> strike_watcher(0) }
	:: d_step { watcher_kills < WATCHER_KILLS && watcher[1] -> strike_watcher(1) }
	:: timeout -> break
	od;
	/* Nothing moves any more. */
	assert(!watcher[0] && !watcher[1] && !command[0] && !command[1]);
	assert(!inside(0) || watcher_killed[0]);
	assert(!inside(1) || watcher_killed[1]);
	assert(lock == FREE && sole == FREE)
}
