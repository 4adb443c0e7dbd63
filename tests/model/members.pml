/*
 * Baton local-log membership model: one group on a file that every member
 * opens, as common/log/local keeps it.  Join, leave, burial and commit are one
 * write transaction each; nothing else holds members together: no broker, no
 * fencing of a producer.  Every interleaving is tried, with any number of
 * ends, restarts, twins, silences and disks that fail in a commit.  A process
 * that is stopped is one that takes no step; when it has been silent for a
 * session others bury it, so anybody may be buried at any time.
 *
 * Workers A (processes 0 and 1: a restart, or a twin with the same id) and B
 * (process 2); two partitions.  A process reads the committed offset of what
 * it was told, decides the next one, and commits it.  An offset stands for all
 * that its transaction holds.
 *
 * -D flags that start with M_ remove one thing and must be caught; flags that
 * start with V_ remove one that another covers (README.md).
 */
#ifndef LASTO
#define LASTO 1		/* offsets of a partition */
#endif

/* ---- the file ---- */
#define NOBODY 0
#define DEAD 9		/* of a process that has ended: its lock is gone */
byte row[2];		/* process + 1 that has the worker's place */
byte txn[2];		/* number of that boot's newest committed transaction */
bit away[2];		/* closed without leaving: the place is kept for a session */
byte asg[2];		/* owner of a partition: worker + 1 */
byte com[2];		/* committed offset */

/* ---- processes ---- */
bit up[3];
#define OUT 0
#define WAITING 1
#define TOLD 2
byte place[3];
bit cur[3];		/* the generation that it was told is the present one: a join, leave or burial raises that */
byte own[3];		/* partitions that it was told, a bit each */
byte has[3];		/* restored: those whose committed offset it has read */
byte pos[6];		/* i * 2 + p: that offset */
byte bat[3];		/* decided, not acknowledged: partition + 1 */
byte nxt[3];		/* its offset */
bit bcur[3];		/* its generation is the present one */
bit unsure[3];		/* the outcome of the last try is not known */
byte num[3];		/* the number of that try */
bit wrote[3];		/* ghost: the present batch is in the log */
bit half[3];		/* of mutants: between the two halves of what should be one */

byte told[2];		/* ghost: who was told this partition in this generation: worker + 1 */
bit k;

#define MINE(i,w) (row[w] == (i) + 1)
#define MASK(w) ((asg[0] == (w) + 1 -> 1 : 0) | (asg[1] == (w) + 1 -> 2 : 0))

#define DROP(i) bat[i] = 0; nxt[i] = 0; bcur[i] = 0; wrote[i] = 0
#define UNREAD(i) has[i] = 0; pos[(i)*2] = 0; pos[(i)*2+1] = 0
#define SURE(i) unsure[i] = 0; num[i] = 0
#ifdef M_KEEPS_DECISIONS	/* a decision outlives its assignment, and is sent under the next one */
#define GONE(i) own[i] = 0; cur[i] = 0; half[i] = 0; UNREAD(i)
#define NOW(i) cur[i]
#else
#define GONE(i) own[i] = 0; cur[i] = 0; half[i] = 0; UNREAD(i); DROP(i)
#define NOW(i) bcur[i]
#endif
#define END(i) up[i] = 0; place[i] = OUT; SURE(i); DROP(i); GONE(i)

/* range: sorted by worker; one member has both, two have one each */
#define ASSIGN asg[0] = (row[0] -> 1 : (row[1] -> 2 : 0)); asg[1] = (row[1] -> 2 : (row[0] -> 1 : 0))
#define RAISE cur[0] = 0; cur[1] = 0; cur[2] = 0; bcur[0] = 0; bcur[1] = 0; bcur[2] = 0; told[0] = 0; told[1] = 0
#ifdef M_JOIN_NO_RAISE
#define JOINED ASSIGN
#else
#define JOINED RAISE; ASSIGN
#endif
#ifdef M_BURIAL_NO_RAISE
#define BURIED ASSIGN
#else
#define BURIED RAISE; ASSIGN
#endif
#ifdef M_LEAVE_KEEPS_SHARES
#define LEFT RAISE
#else
#define LEFT RAISE; ASSIGN
#endif

#define BURY(w) row[w] = NOBODY; txn[w] = 0; away[w] = 0

/* who joins buries the dead, takes the row of its worker, and the shares are given anew; who finds a
 * row of its own worker (a restart, a twin) takes it over as it is: same shares, same generation */
#define JOIN(i,w) \
	if :: row[1-(w)] == DEAD && !away[1-(w)] -> BURY(1-(w)); k = 1 :: else -> k = (row[w] == NOBODY) fi; \
	row[w] = (i) + 1; txn[w] = 0; away[w] = 0; place[i] = WAITING

#ifdef M_NO_GENERATION
#define GENERATION(i) true
#else
#define GENERATION(i) NOW(i)
#endif
#ifdef V_NO_OWNER
#define OWNER(i,w) true
#else
#define OWNER(i,w) (asg[bat[i]-1] == (w) + 1)
#endif
#ifdef M_NO_BOOT
#define BOOT(i,w) (row[w] != NOBODY)
#else
#define BOOT(i,w) MINE(i,w)
#endif
#define MAY(i,w) (BOOT(i,w) && GENERATION(i) && OWNER(i,w))

#ifdef M_NO_NUMBER		/* an unknown outcome is simply tried again */
#define HAPPENED(i,w) false
#else
#ifdef M_NUMBER_OF_TWIN		/* the number is looked at, and not whose it is */
#define HAPPENED(i,w) (unsure[i] && row[w] != NOBODY && txn[w] == num[i])
#else
#define HAPPENED(i,w) (unsure[i] && MINE(i,w) && txn[w] == num[i])
#endif
#endif

/* the write itself: what a reader of the log finds */
#define WRITE(i,w) \
	assert(nxt[i] == com[bat[i]-1] + 1);	/* offsets only go on, and nothing is taken twice */ \
	assert(NOW(i));				/* nothing of an old generation commits */ \
	assert(MINE(i,w));			/* of two with one id, the one that joined last */ \
	assert(asg[bat[i]-1] == (w) + 1);	/* only the owner */ \
	com[bat[i]-1] = nxt[i]; txn[w]++; wrote[i] = 1

#define ACKNOWLEDGED(i) \
	assert(wrote[i]);			/* what was said to be committed is there */ \
	pos[(i)*2+bat[i]-1] = nxt[i]; SURE(i); DROP(i)

/* found out by a commit: the poll says which */
#define REFUSED(i) SURE(i); DROP(i); UNREAD(i)

#ifdef M_DOUBT_OUTLIVES		/* all is restored, and the doubt stays: the next batch is taken for the repetition */
#define STARTOVER(i) DROP(i); UNREAD(i)
#else
#define STARTOVER(i) SURE(i); DROP(i); UNREAD(i)
#endif
#ifdef M_ERROR_IS_DROPPED	/* the repetition fails, and that is taken for a batch of which nothing happened */
#define NOTREPEATED(i) DROP(i)
#else
#define NOTREPEATED(i) STARTOVER(i)
#endif

#ifdef M_CHECK_OUTSIDE		/* looked up in one transaction, written in the next */
#define COMMIT(i,w) \
	:: atomic { bat[i] && !half[i] && MAY(i,w) -> half[i] = 1 } \
	:: atomic { bat[i] && !half[i] && !MAY(i,w) -> REFUSED(i) } \
	:: atomic { bat[i] && half[i] -> half[i] = 0; WRITE(i,w); ACKNOWLEDGED(i) }
#else
#define COMMIT(i,w) \
	:: atomic { bat[i] && HAPPENED(i,w) -> ACKNOWLEDGED(i) } \
	:: atomic { bat[i] && !HAPPENED(i,w) && !MAY(i,w) -> REFUSED(i) } \
	:: atomic { bat[i] && !HAPPENED(i,w) && MAY(i,w) -> WRITE(i,w); ACKNOWLEDGED(i) } \
	/* the disk fails in the commit: it happened, or it did not; the same call again finds out */ \
	:: atomic { bat[i] && !HAPPENED(i,w) && MAY(i,w) -> WRITE(i,w); num[i] = txn[w]; unsure[i] = 1 } \
	:: atomic { bat[i] && !HAPPENED(i,w) && MAY(i,w) -> num[i] = txn[w] + 1; unsure[i] = 1 } \
	:: atomic { bat[i] && unsure[i] -> STARTOVER(i) }	/* asked often enough */ \
	/* the call does not come to its turn: somebody holds the log */ \
	:: atomic { bat[i] && !unsure[i] -> DROP(i) } \
	:: atomic { bat[i] && unsure[i] -> NOTREPEATED(i) }
#endif

#ifdef M_JOIN_IN_STEPS		/* the row in one transaction, the shares in the next */
#define JOINS(i,w) \
	:: atomic { up[i] && place[i] == OUT -> JOIN(i,w); half[i] = k; k = 0 } \
	:: atomic { half[i] -> half[i] = 0; JOINED }
#else
#define JOINS(i,w) \
	:: atomic { up[i] && place[i] == OUT -> JOIN(i,w); if :: k -> JOINED :: else -> skip fi; k = 0 }
#endif

#define ONEOWNER(p,i,w) \
	if \
	:: own[i] & (1 << (p)) -> assert(told[p] == 0 || told[p] == (w) + 1); told[p] = (w) + 1 \
	:: else -> skip \
	fi

#ifdef M_LOOK_IN_TWO		/* the shares by one statement, the generation by the next */
#define TELL(i,w) \
	:: atomic { place[i] == WAITING && MINE(i,w) && !half[i] -> own[i] = MASK(w); half[i] = 1 } \
	:: atomic { place[i] == WAITING && MINE(i,w) && half[i] -> \
		half[i] = 0; place[i] = TOLD; cur[i] = 1; ONEOWNER(0,i,w); ONEOWNER(1,i,w) }
#else
#define TELL(i,w) \
	:: atomic { place[i] == WAITING && MINE(i,w) -> \
		place[i] = TOLD; cur[i] = 1; own[i] = MASK(w); ONEOWNER(0,i,w); ONEOWNER(1,i,w) }
#endif

#ifdef M_READ_EARLY		/* the committed offset is read before the assignment is told */
#define RESTORES(i,p) (place[i] >= WAITING)
#else
#define RESTORES(i,p) (place[i] == TOLD && (own[i] & (1 << (p))))
#endif
#define RESTORE(i,p) \
	:: atomic { RESTORES(i,p) && !bat[i] && !(has[i] & (1 << (p))) -> pos[(i)*2+p] = com[p]; has[i] = has[i] | (1 << (p)) }

#define DECIDE(i,p) \
	:: atomic { place[i] == TOLD && !bat[i] && (own[i] & has[i] & (1 << (p))) && pos[(i)*2+p] < LASTO -> \
		bat[i] = p + 1; nxt[i] = pos[(i)*2+p] + 1; bcur[i] = cur[i]; wrote[i] = 0 }

/* whoever has this process's place keeps it as that of somebody who is dead */
#define LEAVEROW(i,w) if :: MINE(i,w) -> row[w] = DEAD :: else -> skip fi

#define PROCESS(i,w) \
	:: atomic { !up[i] -> up[i] = 1 } \
	JOINS(i,w) \
	/* the poll: told -> revoked or lost; waiting -> assigned; another process has the place -> the end */ \
	:: atomic { place[i] != OUT && row[w] != NOBODY && !MINE(i,w) && !unsure[i] -> END(i) } \
	:: atomic { place[i] != OUT && row[w] == NOBODY && !unsure[i] -> place[i] = OUT; GONE(i) } \
	:: atomic { place[i] == TOLD && MINE(i,w) && !cur[i] && !unsure[i] -> place[i] = WAITING; GONE(i) } \
	TELL(i,w) \
	RESTORE(i,0) RESTORE(i,1) \
	DECIDE(i,0) DECIDE(i,1) \
	COMMIT(i,w) \
	/* it buries the dead, those whose session is over, and those who were silent for one */ \
	:: atomic { place[i] != OUT && row[1-(w)] != NOBODY -> BURY(1-(w)); BURIED } \
	/* leaves; closes and keeps its place; is killed */ \
	:: atomic { place[i] != OUT && MINE(i,w) && !bat[i] -> BURY(w); LEFT; END(i) } \
	:: atomic { place[i] != OUT && MINE(i,w) && !bat[i] -> away[w] = 1; LEAVEROW(i,w); END(i) } \
	:: atomic { up[i] -> LEAVEROW(i,w); END(i) }

/* who is of the present generation has what the file gives it */
#define KNOWS(i,w) assert(!(place[i] == TOLD && MINE(i,w) && cur[i]) || own[i] == MASK(w))

init {
	do
	PROCESS(0,0)
	PROCESS(1,0)
	PROCESS(2,1)
	/* what must hold between any two transactions */
	:: atomic {
		/* a group with a member has an owner for each partition, and that is a member */
		assert((row[0] == NOBODY && row[1] == NOBODY) || (asg[0] && asg[1]));
		assert(asg[0] == 0 || row[asg[0]-1] != NOBODY);
		assert(asg[1] == 0 || row[asg[1]-1] != NOBODY);
		KNOWS(0,0); KNOWS(1,0); KNOWS(2,1);
		break }
	od
}
