package move

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Forward is a server that sends on who still comes for a database that it has left. It is told outside of operations, and told
// again whatever changes of the database.
type Forward struct {
	DatabaseID id.DatabaseID `db:"database_id"`
	ServerID   id.ServerID   `db:"server_id"`
	CreatedAt  time.Time     `db:"created_at"`
	Until      time.Time     `db:"until"`
	EndedAt    *time.Time    `db:"ended_at"` // before its time; the server may not know it yet
	// Generation is that of what the server was last told, and Sent tells that from anything else; empty: it has not done it yet.
	Generation int64  `db:"generation"`
	Sent       string `db:"sent"`
	// Address is where the server comes from to the one that has the database; empty: it has not said it yet. Welcomed is the server
	// that admits clients from there, by WelcomeGeneration; empty: none yet.
	Address           string      `db:"address"`
	Welcomed          id.ServerID `db:"welcomed"`
	WelcomeGeneration int64       `db:"welcome_generation"`
	// From NextAt on every round looks at it. Failures counts the looks in a row that went wrong, the last one by Trouble.
	NextAt   time.Time `db:"next_at"`
	Failures int       `db:"failures"`
	Trouble  string    `db:"trouble"`
}

const (
	// ForwardEvery is how often it is looked whether a server has to be told something else.
	ForwardEvery = 15 * time.Second
	// longestPause is that between two tries of one that does not answer.
	longestPause = 10 * time.Minute
	// forgetAfter is for how long a server is told that a forward is over, which ends by itself there.
	forgetAfter = 24 * time.Hour
)

// Over reports whether nobody is to be sent on any more.
func (f Forward) Over(now time.Time) bool { return f.EndedAt != nil || !now.Before(f.Until) }

// Forgotten reports whether it is not worth telling the server any more that it is over: whom it still sends on, by passwords of
// that time, the database's server knows or does not know.
func (f Forward) Forgotten(now time.Time) bool {
	over := f.Until
	if f.EndedAt != nil && f.EndedAt.Before(over) {
		over = *f.EndedAt
	}
	return !now.Before(over.Add(forgetAfter))
}

// Looked is the forward after a look that went well, or wrong for a reason.
func (f Forward) Looked(now time.Time, why string) Forward {
	if f.Trouble = why; why == "" {
		f.Failures = 0
		return f
	}
	f.Failures++
	f.NextAt = now.Add(min(longestPause, ForwardEvery<<min(f.Failures, 8)))
	return f
}

// Ended is the forward once an operator, or a move back, has ended it.
func (f Forward) Ended(now time.Time) Forward {
	if f.EndedAt == nil {
		f.EndedAt = &now
	}
	f.NextAt = now
	return f
}
