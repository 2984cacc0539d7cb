package retire

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
)

// Sweeper drops retired roles. It reads them from the ledger, so it goes on with a predecessor's work.
type Sweeper struct {
	db    *sql.DB
	run   Run
	log   *zap.Logger
	woken chan struct{}

	last string // the last role that was looked at in this pass
}

// NewSweeper makes a sweeper for the server on whose maintenance database db is, and run's transactions are.
func NewSweeper(db *sql.DB, run Run, log *zap.Logger) *Sweeper {
	return &Sweeper{db: db, run: run, log: log, woken: make(chan struct{}, 1)}
}

const (
	// passPause is between two passes over the retired roles, and roundPause between two rounds of a pass.
	passPause, roundPause = 5 * time.Second, 100 * time.Millisecond
	// roundSize is how many roles a round tries. Each may have to wait for others' transactions.
	roundSize = 20
	dropWait  = "SET LOCAL lock_timeout = '10ms'"
)

// Wake has Sweep look now, as after a retirement: mostly one of several roles is kept, and the others can be dropped at once.
func (s *Sweeper) Wake() { loop.Wake(s.woken) }

// Sweep takes from retired roles the rights that they still have, and drops those that nothing refers to any more, until ctx
// ends. It goes by their names, from round to round, so that no number of roles that cannot be dropped keeps it from the others.
func (s *Sweeper) Sweep(ctx context.Context) {
	loop.Run(ctx, s.log, s.woken, "retired roles are not dropped", s.round)
}

func (s *Sweeper) round(ctx context.Context) (pause time.Duration, err error) {
	roles, err := s.next(ctx)
	for _, r := range roles {
		err = errors.Join(err, s.drop(ctx, r))
	}
	if s.last = ""; len(roles) < roundSize {
		return passPause, err
	}
	s.last = roles[len(roles)-1].name
	return roundPause, err
}

// role is a retired one that there is something to do about.
type role struct {
	name   string
	oid    uint32
	rights bool
}

// next returns the next ones that have rights, or that nothing is seen to refer to.
func (s *Sweeper) next(ctx context.Context) (roles []role, err error) {
	const query = `SELECT name, oid, rights FROM (
			SELECT d.name, d.oid, ` + rights + ` AS rights
			FROM ledger.dead_role d JOIN pg_roles r ON r.oid = d.oid AND r.rolname = d.name WHERE d.name > $1) retired
		WHERE rights OR NOT EXISTS (
			SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = retired.oid)
		ORDER BY name LIMIT $2`
	err = pg.Each(ctx, s.db, func(rows *sql.Rows) error {
		var r role
		err := rows.Scan(&r.name, &r.oid, &r.rights)
		roles = append(roles, r)
		return err
	}, query, s.last, roundSize)
	return roles, err
}

// drop strips a role, and then tries to drop it.
func (s *Sweeper) drop(ctx context.Context, r role) error {
	if r.rights {
		if err := strip(ctx, s.db, r.oid); err != nil {
			return err
		}
	}
	e := Ending{Roles: []string{r.name}, Forget: []string{"DELETE FROM ledger.dead_role WHERE name = " + pq.QuoteLiteral(r.name)}}
	if err := s.run(ctx, append([]string{dropWait}, e.Drop()...)...); !IsKept(err) {
		return err
	}
	return nil
}
