package endless

import (
	"cmp"
	"time"
)

// Bounds are how long a worker of autovacuum may stand; 0 means what is said here.
type Bounds struct {
	// First is for accounts that have kept no worker so long of late: 60 s.
	First time.Duration
	// Again is for the others while no worker is free: 5 s.
	Again time.Duration
}

const (
	// remembered is for how long an account is one of the others.
	remembered = time.Hour
	// heeds is how long a task may go on after it was canceled: a customer's code can catch that.
	heeds = 2 * time.Second
	// longestStep is what a look adds at most, however long after the last one it comes.
	longestStep = 5 * time.Second
)

// doing is what a worker was seen doing.
type doing string

const (
	// working has an end: it reads and writes the table, and no code of the customer's runs.
	working doing = "working"
	// computing runs what the customer has defined: expressions of indexes and of statistics.
	computing doing = "computing"
	// cleaning cleans up indexes, and computes only those of BRIN that have expressions.
	cleaning doing = "cleaning"
	// waiting is for a lock, or for a page that a session holds.
	waiting doing = "waiting"
)

// worker is a worker of autovacuum in a customer's database, at one look.
type worker struct {
	pid      int
	started  time.Time // the worker
	begun    time.Time // its task
	task     string    // as PostgreSQL shows it, with the table
	database string
	relation uint32 // which it vacuums; 0: none
	account  string // whose the database is, or the database where nobody has said it
	doing    doing
	progress string // phase and counters of the task
}

// known is what there is to remember of a worker.
type known struct {
	worker
	stood      time.Duration // computing, in all its tasks
	waited     time.Duration // for the same
	canceled   time.Time     // when a task was
	unheeded   time.Time     // the task that was canceled, by when it began
	unfounded  time.Time     // a task that cleans up and computes nothing, by when it began
	lastLooked time.Time
}

// ending is what is to be done about a worker.
type ending struct {
	worker
	stood time.Duration
	whole bool // end the worker; otherwise cancel its task, and it goes on with the next
}

// keeper decides which workers have stood for too long. One who computes a little in each of many tables stands too, so that is
// added up; but a wait only counts while nothing moves.
type keeper struct {
	bounds Bounds
	of     map[int]*known // by process
	late   map[string]time.Time
}

func newKeeper(b Bounds) keeper {
	b.First, b.Again = cmp.Or(b.First, time.Minute), cmp.Or(b.Again, 5*time.Second)
	return keeper{bounds: b, of: map[int]*known{}, late: map[string]time.Time{}}
}

// look takes what is seen now, and returns whom to end. A worker of which a task was canceled before is ended as a whole: it has
// not heeded that, or stands again.
func (k *keeper) look(seen []worker, allBusy bool, now time.Time) (end []ending) {
	before := k.of
	k.of = make(map[int]*known, len(seen))
	for account, at := range k.late {
		if now.Sub(at) > remembered {
			delete(k.late, account)
		}
	}
	for _, w := range seen {
		of := before[w.pid]
		if of == nil || !of.started.Equal(w.started) {
			of = &known{worker: w, lastLooked: now}
		}
		k.of[w.pid] = of
		of.note(w, now)
		if e, ends := k.judge(of, allBusy, now); ends {
			end = append(end, e)
		}
	}
	return end
}

// note adds the time since the last look.
func (of *known) note(w worker, now time.Time) {
	step := min(now.Sub(of.lastLooked), longestStep)
	moved := !of.begun.Equal(w.begun) || of.progress != w.progress
	of.worker, of.lastLooked = w, now
	if w.doing != waiting || moved {
		of.waited = 0
	}
	switch {
	case w.doing == waiting && !moved:
		of.waited += step
	case of.stands() && w.doing != waiting:
		of.stood += step
	}
}

// stands reports whether a worker does what may have no end.
func (of *known) stands() bool {
	return of.doing == computing || of.doing == waiting || of.doing == cleaning && !of.unfounded.Equal(of.begun)
}

func (k *keeper) judge(of *known, allBusy bool, now time.Time) (e ending, ends bool) {
	bound := k.bounds.First
	if _, late := k.late[of.account]; late && allBusy {
		bound = k.bounds.Again
	}
	unheeded := !of.canceled.IsZero() && of.unheeded.Equal(of.begun) && now.Sub(of.canceled) >= heeds
	total := of.stood + of.waited
	return ending{worker: of.worker, stood: total, whole: !of.canceled.IsZero()}, of.stands() && (unheeded || total >= bound)
}

// done notes that a task was ended. What its worker does next counts from then on.
func (k *keeper) done(e ending, now time.Time) {
	k.late[e.account] = now
	if of := k.of[e.pid]; of != nil {
		of.canceled, of.unheeded, of.stood, of.waited = now, e.begun, 0, 0
	}
}

// acquit notes that a task which cleans up indexes computes nothing.
func (k *keeper) acquit(e ending) {
	if of := k.of[e.pid]; of != nil {
		of.unfounded, of.stood = e.begun, 0
	}
}
