package backup

import (
	"bytes"
	"context"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/follow"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pgdump"
)

// A file that is followed is of the moment from which on the changes of the database are kept. It is read by one operation, soon,
// and by nobody who has not got it from here: its rows are counted as they pass, and no digest is taken of them.

func (r Request) source() follow.Request {
	return follow.Request{OperationID: r.OperationID, DatabaseID: r.DatabaseID, Database: r.Database}
}

// hold takes the snapshot that is dumped.
func (x *Backups) hold(ctx context.Context, d dumping, req Request) (*pgdump.Held, error) {
	if !req.Followed {
		return d.run.Hold(ctx, d.db, "")
	}
	moment, err := x.moment(ctx, req)
	if err != nil {
		return nil, err
	}
	defer moment.Close()
	held, err := d.run.Hold(ctx, d.db, moment.Snapshot)
	if err != nil {
		return nil, err
	}
	if err := moment.Taken(ctx, held.Tx); err != nil {
		held.Close()
		return nil, err
	}
	return held, nil
}

// waitShare is the part of the time of a dump for which a moment is waited for from which changes are kept: until all
// transactions have ended that are open on the server, of whoever's databases. Meanwhile other work on the database waits, too.
const waitShare = 12

// moment begins to keep the changes. A *jobs.TooLongError: somebody has had a transaction open for too long.
func (x *Backups) moment(ctx context.Context, req Request) (*follow.Moment, error) {
	ctx, cancel := jobs.Within(ctx, "the wait for transactions that were open on the server", x.Limits.Dump/waitShare)
	defer cancel()
	moment, err := x.Source.Begin(ctx, req.source())
	return moment, jobs.InTime(ctx, err)
}

// unkeep ends the keeping of changes.
func (x *Backups) unkeep(ctx context.Context, req Request) error {
	if !req.Followed {
		return nil
	}
	return x.Source.Drop(ctx, req.OperationID)
}

// args are those of pg_dump. A database that is followed has no publication but that of the move.
func (w writing) args(req Request, args ...string) []string {
	if req.Followed {
		args = append(args, "--no-publications")
	}
	return args
}

// counts are the rows that go into a dump, by the names of their tables. Nil counts none.
type counts struct {
	rows    map[string]int64
	current string
}

func newCounts(list []content.Table) *counts {
	c := &counts{rows: map[string]int64{}}
	for _, t := range list {
		if t.Dumped() {
			c.rows[t.Loaded()] = 0
		}
	}
	return c
}

func (c *counts) begin(name string) {
	if c != nil {
		c.current = dumpsql.Canonical(name)
	}
}

func (c *counts) lines(text []byte) {
	if c != nil {
		c.rows[c.current] += int64(bytes.Count(text, []byte{'\n'}))
	}
}

// others are the tables of a list that are yet to be counted.
func (c *counts) others(list []content.Table) (others []content.Table) {
	if c == nil {
		return list
	}
	for _, t := range list {
		if !t.Dumped() {
			others = append(others, t)
		}
	}
	return others
}

// into adds what was counted, when the dump has ended.
func (c *counts) into(rows map[string]int64) {
	if c != nil {
		for name, n := range c.rows {
			rows[name] = n
		}
	}
}
