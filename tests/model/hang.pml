/*
 * Baton hanging-transactions model: a coordinator that calls a transaction
 * complete though its markers have reached only some of its partitions.
 * One producer; partition 0 is its own (the turn log), partition 1 another
 * service's topic.  Transactions 1 to LASTN write to both.  A marker ends all
 * that the producer has open in its partition.  Every interleaving is tried.
 */
#define LASTN 3
#ifndef SKIPS
#define SKIPS 2		/* markers that are passed over */
#endif
#define BREAKS 2	/* producers that are fenced, time out or lose their answer */
#ifndef CRASHES
#define CRASHES 0	/* of the worker: with a skip at the same time the other topic is not promised */
#endif

/* what a reader at committed makes of transaction n in partition p */
#define NONE 0
#define OPEN 1
#define SEEN 2
#define GONE 3
byte st[8];		/* p * 4 + n */
#define ST(p,n) st[(p) * 4 + (n)]

/* coordinator */
#define IDLE 0
#define RUNS 1
#define COMMITS 2
#define ABORTS 3
byte cs;
bit due0, due1;		/* markers that are to be written */
bit has0, has1;		/* partitions of the transaction */
byte skips, breaks, crashes;

/* worker */
byte cur;		/* transaction that is open or waits for its answer; 0 none */
byte last;		/* number of the newest begun */
byte owed;		/* has ended, and that is not seen in partition 0; 0 none */
byte shared;		/* the same in partition 1 */
bit kind;		/* how that ended: 1 committed */
byte unknown;		/* broke without an answer */
bit notes;		/* the open transaction holds notes only */
bit sweeps, how;	/* ending what hangs; how: 1 commits */
bit dead;
bit broken;
bit told[4];		/* ghost: the worker acts on it: store, executors */

#define MARK(p,v) \
	if :: ST(p,1) == OPEN -> ST(p,1) = v :: else fi; \
	if :: ST(p,2) == OPEN -> ST(p,2) = v :: else fi; \
	if :: ST(p,3) == OPEN -> ST(p,3) = v :: else fi

#define ANYOPEN(p) (ST(p,1) == OPEN || ST(p,2) == OPEN || ST(p,3) == OPEN)
#define FREE (cs == IDLE && !cur && !sweeps && !broken && !dead)

#ifdef M_BEGIN_UNSEEN
#define SURE true
#else
#ifdef M_SHARED_UNSEEN
#define SURE (owed == 0)
#else
#define SURE (owed == 0 && (skips == 0 || shared == 0))	/* who passes over has gone, and that is heard */
#endif
#endif

/* what was acted on is there, and what happened is the same everywhere */
#define KEPT(n) \
	assert(!told[n] || ST(0,n) == SEEN); \
	assert(crashes > 0 || !told[n] || ST(1,n) != GONE); \
	assert(crashes > 0 || !(ST(0,n) == SEEN && ST(1,n) == GONE)); \
	assert(crashes > 0 || !(ST(0,n) == GONE && ST(1,n) == SEEN))

init {
	do
	/* ---- the worker ---- */
	:: atomic { FREE && SURE && last < LASTN ->	/* begin, and send */
		last++; cur = last; notes = 0; unknown = 0;
		ST(0,cur) = OPEN; ST(1,cur) = OPEN;
		cs = RUNS; has0 = 1; has1 = 1 }
	:: atomic { cur && cs == RUNS && !notes ->	/* commit; the answer comes at once ... */
		cs = COMMITS; due0 = has0; due1 = has1;
		owed = cur; shared = cur; kind = 1;
#ifdef M_TOLD_UNSEEN
		told[cur] = 1;
#endif
		cur = 0 }
	:: atomic { cur && cs == RUNS && breaks < BREAKS ->	/* ... or is lost */
		breaks++; cs = COMMITS; due0 = has0; due1 = has1;
		unknown = cur; cur = 0; broken = 1 }
	:: atomic { cur && cs == RUNS ->		/* aborted on purpose: a record that cannot be written */
		cs = ABORTS; due0 = has0; due1 = has1;
#ifndef M_ABORT_UNSEEN
		owed = cur; shared = cur; kind = 0;
#endif
		cur = 0 }
	:: atomic { owed && ST(0,owed) != OPEN ->	/* it was looked for, and seen */
		if :: kind -> told[owed] = 1 :: else fi; owed = 0 }
	:: atomic { shared && ST(1,shared) != OPEN -> shared = 0 }
	:: atomic { FREE && ((owed && ST(0,owed) == OPEN) || (shared && ST(1,shared) == OPEN)) ->	/* brought out: a note behind it */
		cs = (kind -> COMMITS : ABORTS); due0 = ANYOPEN(0); due1 = ANYOPEN(1) }
	/* the producer is made anew: what the coordinator has begun ends first */
	:: atomic { broken && !dead && cs == IDLE && !sweeps ->
		broken = 0; sweeps = 1;
#ifdef M_SWEEP_ABORTS
		how = 0
#else
#ifdef M_UNKNOWN_IS_ABORT
		how = (kind && (owed == last || shared == last))
#else
		how = ((kind && (owed == last || shared == last)) ||
			(unknown != 0 && (ST(0,unknown) == SEEN || ST(1,unknown) == SEEN)))
#endif
#endif
		}
	:: atomic { sweeps && cs == IDLE && (ANYOPEN(0) || ANYOPEN(1)) ->
		cs = (how -> COMMITS : ABORTS); due0 = ANYOPEN(0); due1 = ANYOPEN(1) }
	:: atomic { sweeps && cs == IDLE && !ANYOPEN(0) && !ANYOPEN(1) -> sweeps = 0; }
	/* ---- faults ---- */
	:: atomic { cs == RUNS && breaks < BREAKS ->	/* the coordinator times it out, or another fences */
		breaks++; cs = ABORTS; due0 = has0; due1 = has1; unknown = cur; cur = 0; broken = 1 }
	:: atomic { !cur && !sweeps && !broken && !dead && breaks < BREAKS -> breaks++; broken = 1 }	/* fatal while idle */
	:: atomic { crashes < CRASHES && !dead ->
		crashes++; dead = 1;
		if :: cs == RUNS -> cs = ABORTS; due0 = has0; due1 = has1 :: else fi;
		cur = 0; owed = 0; shared = 0; unknown = 0; sweeps = 0; broken = 0 }
	:: atomic { dead && cs == IDLE -> dead = 0; sweeps = 1; how = 0 }	/* the next process knows nothing */
	/* ---- markers ---- */
	:: atomic { due0 -> due0 = 0; if :: cs == COMMITS -> MARK(0,SEEN) :: else -> MARK(0,GONE) fi }
	:: atomic { due1 -> due1 = 0; if :: cs == COMMITS -> MARK(1,SEEN) :: else -> MARK(1,GONE) fi }
	:: atomic { due0 && skips < SKIPS -> skips++; due0 = 0 }
	:: atomic { due1 && skips < SKIPS -> skips++; due1 = 0 }
	:: atomic { (cs == COMMITS || cs == ABORTS) && !due0 && !due1 -> cs = IDLE; has0 = 0; has1 = 0 }
	/* ---- what must hold ---- */
	:: atomic { KEPT(1); KEPT(2); KEPT(3);
		/* what can be done has been, and something hangs */
		assert(!(FREE && SURE && !due0 && !due1 && (ANYOPEN(0) || (crashes == 0 && ANYOPEN(1)))));
		break }
	od
}
