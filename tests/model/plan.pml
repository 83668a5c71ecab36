/*
 * model/plan.pml - commit, undo, rollback, add and recovery of a plan (src/plan), for spin.
 * docs/MODEL.md says which step is which function, what is left out, and how it is run.
 *
 * One plan over two targets, the second (ELSEWHERE) on a file system of its own. A step is one system call that
 * another process or a power cut can notice. `mem` is what processes see, `dev` what a power cut
 * leaves: any part of `mem` may reach it at any moment and in any order; a sync brings all of it.
 */
#ifndef FIRST
#define FIRST COMMIT	/* what the first actor does, and the second */
#endif
#ifndef SECOND
#define SECOND NOTHING
#endif
#ifndef SET
#define SET 3		/* sandboxes at the beginning: bits */
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef STALES
#define STALES 0	/* 1: the fence's token may become stale at any step */
#endif
#ifndef FAILS
#define FAILS 0		/* operations that fail, so that the commit turns back */
#endif
#ifndef BEGIN
#define BEGIN ACTIVE	/* the plan's state; COMMITTED for an undo */
#endif
#ifndef ELSEWHERE
#define ELSEWHERE 1	/* the second target is on another file system, and so has its stage in it */
#endif

/* What an actor does. */
#define RECOVER  0
#define COMMIT   1
#define UNDO     2
#define ROLLBACK 3
#define ADD      4	/* the second sandbox */
#define NOTHING  5

/* States of the record. */
#define ACTIVE      0
#define PREPARED    1
#define COMMITTED   2
#define ROLLED_BACK 3

/* The intent: none, not readable, or its phase. */
#define NO_INTENT 0
#define TORN      1
#define PREPARE   2
#define APPLY     3
#define UNDOING   4
#define APPLIED   5

typedef disk {
	/* plan.json */
	byte state, set;
	/* intent, undo, undone: one directory, so their renames are seen in their order */
	byte intent, its;	/* its: the sandboxes that it has */
	bool back;		/* it takes a commit back */
	bool kept, undone;
	byte boot;		/* in which it was written */
	/* of each target: has it the new version, is the stage there, is the new content */
	bool new[2], stage[2], content[2];
}

disk mem, dev;
byte boot;
byte lock;		/* ID of the holder of the plan's lock */
bool fence = true;	/* the token of --fence is current */
bool alive[5];
byte kills, cuts, fails;

/* What only the checker knows. */
bool promised;		/* the fence was proven for what is under way */
byte performing;	/* actors between the promise and its end */
bool told_done, told_undone, told_rolled_back, told_added;
bool told_failed;
bool take_back_begun;
bool ended[5];

#define ID(me)      ((me) + 1)
#define has(set, i)  ((set) >> (i) & 1)
#define all_new(s)  ((!has(s, 0) || mem.new[0]) && (!has(s, 1) || mem.new[1]))
#define all_old(s)  ((!has(s, 0) || !mem.new[0]) && (!has(s, 1) || !mem.new[1]))
#define wanted      (!mem.back)	/* an operation that is done has brought new versions, or has taken them back */

/* -- the disks ------------------------------------------------------------------------- */

inline write_back_record() { dev.state = mem.state; dev.set = mem.set }

inline write_back_dir(intent_)
{
	dev.intent = intent_;
	dev.its = mem.its;
	dev.back = mem.back;
	dev.kept = mem.kept;
	dev.undone = mem.undone;
	dev.boot = mem.boot
}

inline write_back_target(t)
{
	dev.new[t] = mem.new[t];
	dev.content[t] = mem.content[t];
	dev.stage[t] = mem.stage[t]
}

/* syncfs: the file system of the state directory and of the first target; then the other one. */
inline sync_own()
{
	d_step {
		write_back_record();
		write_back_dir(mem.intent);
		write_back_target(0);
#if !ELSEWHERE
		write_back_target(1)
#endif
	}
}

inline sync_other() { d_step { write_back_target(1) } }

/* The kernel writes back what it likes. An intent whose name is there may lack its bytes. */
active proctype writeback() provided (CUTS > cuts)
{
end:	do
	:: d_step { dev.state != mem.state || dev.set != mem.set -> write_back_record() }
	:: d_step { (dev.intent != mem.intent || dev.kept != mem.kept || dev.undone != mem.undone) ->
		write_back_dir(mem.intent) }
	:: d_step { mem.intent == PREPARE && dev.intent == NO_INTENT -> write_back_dir(TORN) }
	:: d_step { dev.new[0] != mem.new[0] -> dev.new[0] = mem.new[0] }
	:: d_step { dev.new[1] != mem.new[1] -> dev.new[1] = mem.new[1] }
	:: d_step { !dev.content[0] && mem.content[0] -> dev.content[0] = true }
	:: d_step { !dev.content[1] && mem.content[1] -> dev.content[1] = true }
	:: d_step { dev.stage[1] != mem.stage[1] -> dev.stage[1] = mem.stage[1] }
	od
}

/* -- steps ------------------------------------------------------------------------------ */

/* hf_plan_save: the whole record as this actor knows it, under the guard of its token. */
inline save(state_)
{
	d_step {
#ifndef MUTANT_LOCK_DROPPED
		assert(lock == ID(me));	/* L5: else the guard refuses it */
#endif
		mem.state = state_;
		mem.set = set;
		/* L10, L11: what is told is true at every instant. */
		assert(state_ != COMMITTED || all_new(mem.set));
		assert(state_ != ACTIVE && state_ != ROLLED_BACK || all_old(3))
	}
}

/* hf_stage_clear: the second target's stage is in that target, and goes when all is over. */
inline clear_stage() { mem.stage[1] = !ELSEWHERE }

/* hf_intent_end, in the actor's purpose */
inline end_intent()
{
	if
	:: mem.back && mem.kept -> d_step { mem.kept = false; assert(mem.intent != NO_INTENT) }
	:: else
	fi;
	d_step {
		if
		:: mem.back -> mem.undone = true
		:: else -> mem.kept = true
		fi;
		mem.intent = NO_INTENT
	};
	clear_stage()
}

/* Operation of target `i`, forwards; a done one is left as it is. */
inline do_op()
{
	d_step {
		if
		:: has(mem.its, i) && mem.new[i] != wanted ->
			assert(mem.stage[i]);	/* else its other version is lost */
			assert(promised);	/* L5 */
			mem.new[i] = wanted
		:: else
		fi;
		i++
	}
}

inline undo_op()
{
	d_step {
		i--;
		if
		:: has(mem.its, i) && mem.new[i] == wanted -> assert(mem.stage[i]); mem.new[i] = !wanted
		:: else
		fi
	}
}

#define begun ((has(mem.its, 0) && mem.new[0] == wanted) || (has(mem.its, 1) && mem.new[1] == wanted))

/* hf_work_begin_apply: all tokens, and the phase, under their guards. */
inline prove_and_promise(ok)
{
	ok = fence || mem.back;
#ifdef MUTANT_FENCE_UNPROVEN_IN_RECOVERY
	ok = ok || recovering;
#endif
	if
	:: ok -> mem.intent = APPLY; promised = fence || mem.back
	:: else
	fi
}

proctype actor(byte me; byte role)
{
	byte i, set;
	bool recovering, ok, again, mine;

	{
		atomic { lock == 0 -> lock = ID(me); set = mem.set; recovering = true };
#ifdef MUTANT_LOCK_DROPPED
		/* cleveragents #7060: the set is read, the lock is given back, the rest is done without. */
		if
		:: role == COMMIT && mem.intent == NO_INTENT && mem.state == ACTIVE -> lock = 0; mine = true; goto commit
		:: else
		fi;
#endif
		/* hf_plan_heal: only a record that says so is recovered before a sandbox is added. */
		if
#ifdef MUTANT_ADD_FROZEN
		:: role == ADD -> goto add
#else
		:: role == ADD && mem.state != PREPARED -> goto add
#endif
		:: else
		fi;

		/* hf_work_recover */
		if
		:: atomic { mem.intent == TORN -> mem.intent = NO_INTENT }	/* quarantined */
		:: else
		fi;
		if
		:: mem.intent == NO_INTENT ->
			clear_stage();
			if
			:: mem.state == PREPARED && mem.undone -> again = true; save(ROLLED_BACK)
			:: mem.state == PREPARED && !mem.undone && mem.kept -> again = true; save(COMMITTED)
			:: mem.state == PREPARED && !mem.undone && !mem.kept -> again = true; save(ACTIVE)
			:: else
			fi;
			goto recovered
		:: else
		fi;
		again = true;
		/* open_site: the stage may be missing only where nothing is to be moved any more, or was ever. */
		assert(!has(mem.its, 1) || mem.stage[1] || mem.intent != APPLY);
		if
		:: mem.intent == APPLIED && mem.state == (mem.back -> ROLLED_BACK : COMMITTED) ->
#ifdef MUTANT_RECOVERY_UNDOES
			goto back;
#endif
			end_intent();
			goto recovered
		:: mem.intent == UNDOING -> goto back
		:: mem.intent == PREPARE && !begun ->
#ifndef MUTANT_OTHER_BOOT
			/* The sync that makes it a promise may not have ended: its content may be torn. */
			if
			:: mem.boot != boot || (has(mem.its, 1) && !mem.stage[1]) -> goto back
			:: else
			fi;
#endif
#ifndef MUTANT_RECOVERY_UNSYNCED
			sync_own();
			sync_other();
#endif
			atomic { prove_and_promise(ok) };
			if
			:: ok -> goto forward
			:: else -> goto back
			fi
#ifdef MUTANT_RECOVERY_UNDOES
		:: mem.intent == APPLY || mem.intent == APPLIED -> goto back
#endif
		:: else -> goto forward
		fi;

recovered:		skip;
		recovering = false;
		if
		:: role == RECOVER -> goto out
		:: role == COMMIT -> goto commit
		:: role == UNDO -> goto take_back
		:: role == ROLLBACK -> goto roll_back
		:: role == ADD -> goto add
		fi;

		/* -- the verbs ------------------------------------------------------------ */
add:		skip;
		if
#ifdef MUTANT_ADD_FROZEN
		:: true ->
#else
		:: mem.state == ACTIVE ->
#endif
			d_step { mem.set = set | 2; told_added = true }
		:: else	/* frozen: refused */
		fi;
		goto out;

roll_back:		skip;
		if
		:: mem.state == ACTIVE ->
			save(ROLLED_BACK);
			d_step { write_back_record(); told_rolled_back = true }	/* HF_PLAN_SAVE_DURABLE */
		:: else
		fi;
		goto out;

take_back:		skip;
		if
		:: mem.state == COMMITTED -> save(PREPARED)
		:: else -> goto out
		fi;
		d_step { take_back_begun = true; mem.intent = PREPARE; mem.its = set; mem.back = true; mem.boot = boot };
		goto promise;

commit:		skip;
		if
		:: mine || mem.state == ACTIVE
		:: !mine && mem.state == COMMITTED -> goto out	/* learns that it is done */
		:: else -> goto out
		fi;
		/* hf_carry_out: prepare */
		if
		:: !fence -> told_failed = true; goto out
		:: else
		fi;
		/* hf_stage_build: what is to land, its content in memory only */
		d_step { mem.stage[0] = true; mem.stage[1] = true; mem.content[0] = true; mem.content[1] = true };
		save(PREPARED);
		d_step { mem.intent = PREPARE; mem.its = set; mem.back = false; mem.boot = boot };
promise:		skip;
#if defined(MUTANT_NO_FIRST_SYNC)
		skip;
#elif defined(MUTANT_INTENT_UNSYNCED)
		d_step { write_back_record(); write_back_target(0) };
		sync_other();
#elif defined(MUTANT_CONTENT_UNSYNCED)
		d_step { write_back_record(); write_back_dir(mem.intent) };
#else
		sync_own();
		sync_other();
#endif
#ifdef MUTANT_FENCE_OUTSIDE_GUARD
		ok = fence || mem.back;
		atomic {
			if
			:: ok -> mem.intent = APPLY; promised = fence || mem.back
			:: else
			fi
		};
#else
		atomic { prove_and_promise(ok) };
#endif
		if
		:: !ok ->
			/* drop: nothing was moved */
			mem.intent = NO_INTENT;
			sync_own();
			sync_other();
			if
			:: mem.back -> save(COMMITTED)
			:: else -> save(ACTIVE)
			fi;
			clear_stage();
			told_failed = true;
			goto out
		:: else
		fi;
#ifdef MUTANT_COMMITTED_EARLY
		d_step { mem.state = COMMITTED };
#endif

		/* -- forwards ---------------------------------------------------------------- */
forward:		skip;
		d_step {
			performing++;
			assert(performing == 1);	/* L11 */
			i = 0
		}
		do
		:: i < 2 -> do_op()
		:: i < 2 && fails < FAILS && !recovering ->
			d_step { fails++; performing-- };
			goto back
		:: i == 2 -> break
		od;
		i = 0;
#ifdef MUTANT_OLDS_EARLY
		clear_stage();
#endif
#ifdef MUTANT_ENDED_EARLY
		d_step { mem.intent = NO_INTENT; mem.kept = !mem.back; mem.undone = mem.back };
#endif
#ifdef MUTANT_RECOVERY_UNMARKED
		if
		:: !recovering -> mem.intent = APPLIED
		:: else
		fi;
#elif !defined(MUTANT_ENDED_EARLY)
		mem.intent = APPLIED;
#endif
#ifndef MUTANT_NO_SECOND_SYNC
		sync_own();
		sync_other();
#endif
		/* hf_work_conclude: not synced */
		if
		:: mem.back -> save(ROLLED_BACK)
		:: else -> save(COMMITTED)
		fi;
		performing--;
#ifndef MUTANT_ENDED_EARLY
		end_intent();
#endif
		if
		:: recovering -> goto recovered
		:: else
		fi;
		d_step {
			if
			:: mem.back -> told_undone = true
			:: else -> assert(!told_done); told_done = true
			fi
		};
		goto out;

		/* -- back ------------------------------------------------------------------------ */
back:		skip;
		d_step { mem.intent = UNDOING; i = 2 };
		do
		:: i > 0 -> undo_op()
		:: i == 0 -> break
		od;
		skip;
		/* hf_work_withdraw */
#ifndef MUTANT_UNDONE_UNSYNCED
		sync_own();
		sync_other();
#endif
		if
		:: mem.back -> save(COMMITTED)
		:: else -> save(ACTIVE)
		fi;
		mem.intent = NO_INTENT;
		clear_stage();
		if
		:: recovering -> goto recovered
		:: else -> told_failed = true
		fi;
out:		skip;
		d_step {
			if
			:: lock == ID(me) -> lock = 0
			:: else
			fi;
			alive[me] = false;
			/* L10: recovery that nothing disturbs leaves nothing for the next one. */
			assert(me != 4 || !again);
			ended[me] = true
		}
	} unless { !alive[me] }
}

/* -- the world --------------------------------------------------------------------------- */

/* SIGKILL: the lock of a dead owner is free. */
inline strike(p)
{
	if
	:: lock == ID(p) -> lock = 0
	:: else
	fi;
	performing = 0;
	alive[p] = false
}

inline lose_power()
{
	strike(0);
	strike(1);
	strike(2);
	lock = 0;
	mem.state = dev.state;
	mem.set = dev.set;
	mem.intent = dev.intent;
	mem.its = dev.its;
	mem.back = dev.back;
	mem.kept = dev.kept;
	mem.undone = dev.undone;
	mem.boot = dev.boot;
	mem.new[0] = dev.new[0];
	mem.new[1] = dev.new[1];
	mem.stage[1] = dev.stage[1];
	mem.content[0] = dev.content[0];
	mem.content[1] = dev.content[1];
	/* What is left of the promise is what can be seen of it. */
	promised = mem.intent == APPLY || mem.intent == APPLIED || (mem.intent == PREPARE && begun);
	boot++;
	cuts++
}

#define calm (!alive[0] && !alive[1] && !alive[2])

active proctype world()
{
	bool recoverer;

	d_step {
		mem.state = BEGIN;
		mem.set = SET;
		mem.stage[0] = true;
		mem.kept = BEGIN == COMMITTED;
		mem.new[0] = BEGIN == COMMITTED && has(SET, 0);
		mem.new[1] = BEGIN == COMMITTED && has(SET, 1);
		mem.content[0] = BEGIN == COMMITTED;
		mem.content[1] = BEGIN == COMMITTED;
		mem.stage[1] = !ELSEWHERE;
		dev.stage[0] = true;
		write_back_record();
		write_back_dir(mem.intent);
		write_back_target(0);
		write_back_target(1)
	}
	atomic {
		alive[0] = true;
		run actor(0, FIRST);
		if
		:: SECOND != NOTHING -> alive[1] = true; run actor(1, SECOND)
		:: else
		fi
	}
	do
	:: d_step { kills < KILLS && alive[0] -> kills++; strike(0) }
	:: d_step { kills < KILLS && alive[1] -> kills++; strike(1) }
	:: d_step { kills < KILLS && alive[2] -> kills++; strike(2) }
	:: d_step { STALES && fence -> fence = false }
	:: d_step { cuts < CUTS -> lose_power() }
	:: atomic { calm && !recoverer -> recoverer = true; alive[2] = true; run actor(2, RECOVER) }
	:: calm && recoverer -> break
	od;
	/* Recovery that nothing disturbs, twice. */
	skip;
	d_step { kills = KILLS; cuts = CUTS };
	atomic { alive[3] = true; run actor(3, RECOVER) };
	ended[3];
	atomic { alive[4] = true; run actor(4, RECOVER) };
	ended[4];
	assert(mem.intent == NO_INTENT);
	assert(mem.state != PREPARED);
	/* L10: all or nothing, and the record says which. */
	assert(mem.state != COMMITTED || all_new(mem.set));
	assert(mem.state == COMMITTED || all_old(3));
	assert(has(mem.set, 0) || !mem.new[0]);
	assert(has(mem.set, 1) || !mem.new[1]);
	assert(!mem.new[0] || mem.content[0]);
	assert(!mem.new[1] || mem.content[1]);
	/* What was told is so, also after a power cut. */
	assert(!told_done || take_back_begun || mem.state == COMMITTED);
	assert(!told_undone || mem.state == ROLLED_BACK);
	assert(!told_rolled_back || mem.state == ROLLED_BACK);
	assert(!told_added || cuts > 0 || has(mem.set, 1));
	/* One committer alone that was told of a failure has changed nothing. */
	assert(!told_failed || SECOND == COMMIT || BEGIN == COMMITTED || mem.state != COMMITTED)
}

/* A look at the record at any time, without a lock (plan show). */
active proctype onlooker()
{
end:	atomic { mem.state == COMMITTED && BEGIN != COMMITTED -> assert(all_new(mem.set)) }
}
