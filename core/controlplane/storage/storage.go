// Package storage holds databases to the quotas of their bytes. The agents measure; a periodic task asks each for the sizes that
// have changed and decides. What it decides is one of the database's settings, which package settings has the server enforce. It
// is no operation, and goes on beside any.
package storage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Storage asks the agents for sizes, and decides what follows from them.
type Storage struct {
	base *base.Base

	mu sync.Mutex
	// positions are up to where this process has stored the agents' sizes. What a process has not stored when it ends, the next one
	// reads again: it begins from the start.
	positions map[id.ServerID]string
}

// New makes it, and registers its periodic task.
func New(p *base.Base) *Storage {
	s := &Storage{base: p, positions: map[id.ServerID]string{}}
	p.EachServer("sizes of databases", base.RoundEvery, s.update)
	return s
}

// CrashDecided is the crash point between a decision and its way to the server.
const CrashDecided = "storage.decided"

// CrashPoints lists it.
var CrashPoints = []string{CrashDecided}

// update stores the sizes of one server that have changed. If some cannot be stored, all are asked for again in the next round.
func (s *Storage) update(ctx context.Context, _ time.Time, of server.Server) error {
	agent, err := s.base.Fleet.Agent(of)
	if err != nil {
		return s.base.UnlessSettled(ctx, "storage.not_asked", "", err)
	}
	var failed error
	position := s.position(of.ID)
	for more := true; more; {
		used, err := ports.Ask(ctx, agent, command.StorageUse{After: position})
		if err != nil {
			return s.base.UnlessSettled(ctx, "storage.not_asked", "", err)
		}
		failed = errors.Join(failed, s.storeAll(ctx, page{agent, of.ID, position}, used.Databases))
		position, more = used.Next, used.More
	}
	if failed == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.positions[of.ID] = position
	}
	return nil
}

func (s *Storage) position(of id.ServerID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if position, known := s.positions[of]; known {
		return position
	}
	return command.StorageFromStart
}

// page is what was asked for: the sizes on a server that have changed since a position.
type page struct {
	agent ports.Agent
	of    id.ServerID
	after string
}

// storeAll stores sizes, each in its own transaction, so that a failure affects no other.
func (s *Storage) storeAll(ctx context.Context, p page, uses []command.DatabaseUse) error {
	if len(uses) == 0 {
		return nil
	}
	sizes, list := bytesOf(uses), []id.DatabaseID{}
	for _, u := range uses {
		list = append(list, u.DatabaseID)
	}
	records, err := ports.Read(ctx, s.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
		return tx.Storage().OnServer(ctx, p.of, list)
	})
	if err != nil {
		return s.base.UnlessSettled(ctx, "storage.not_stored", "", err)
	}
	var later map[id.DatabaseID]int64
	if slices.ContainsFunc(records, func(r database.Record) bool { return closes(r, sizes[r.ID]) }) {
		again, err := ports.Ask(ctx, p.agent, command.StorageUse{After: p.after})
		if err != nil {
			return s.base.UnlessSettled(ctx, "storage.not_asked", "", err)
		}
		later = bytesOf(again.Databases)
	}
	var failed error
	for _, r := range records {
		bytes, sure := later[r.ID]
		if !sure {
			bytes = sizes[r.ID]
		}
		if worthStoring(r, bytes, s.base.Clock.Now()) {
			failed = errors.Join(failed, s.base.UnlessSettled(ctx, "storage.not_stored", r.ID, s.decide(ctx, r, bytes, sure)))
		}
	}
	return failed
}

func bytesOf(uses []command.DatabaseUse) map[id.DatabaseID]int64 {
	sizes := make(map[id.DatabaseID]int64, len(uses))
	for _, u := range uses {
		sizes[u.DatabaseID] = u.Bytes
	}
	return sizes
}

// closes reports whether a size closes a database, which no other size undoes. So it must not be that of a database in whose
// place a restore has put another one. It is asked for after the record was read, once more, and the record must not get another
// generation, which a restore gives it, until the decision is stored. A smaller one that is too old is set right by the next.
func closes(r database.Record, bytes int64) bool {
	return r.StorageStatus != database.StorageClosed &&
		r.Storage().Measured(bytes, r.StorageQuota()).Status == database.StorageClosed
}

var errUnsure = errors.New("the size may be that of a database that a restore has replaced; it is asked for again")

const (
	// storeAfter is how old a stored size may be until a new one takes its place though it says nothing new.
	storeAfter = 30 * time.Second
	// newsShare is the part of the quota that is news.
	newsShare = 100
)

// worthStoring spares the metadata database the many sizes of a database that is written all the time.
func worthStoring(r database.Record, bytes int64, now time.Time) bool {
	grown := max(bytes, r.SizeBytes) - min(bytes, r.SizeBytes)
	return r.Storage().Measured(bytes, r.StorageQuota()) != r.Storage() || grown > r.StorageQuota()/newsShare ||
		r.SizedAt == nil || grown > 0 && now.Sub(*r.SizedAt) > storeAfter
}

// decide stores a size with what follows from it, in one transaction. It is sure that the size is not older than the record.
func (s *Storage) decide(ctx context.Context, r database.Record, bytes int64, sure bool) error {
	var was, is database.StorageStatus
	var of database.Record
	err := s.base.UpdateDatabase(ctx, r.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if locked.Status.Gone() {
			return base.ErrSettled
		}
		locked, err := withQuota(ctx, tx, locked)
		if err != nil {
			return err
		}
		if closes(locked, bytes) && (!sure || locked.SettingsGeneration != r.SettingsGeneration) {
			return errUnsure
		}
		now := s.base.Clock.Now()
		locked.SizeBytes, locked.SizedAt = bytes, &now
		to := locked.Storage().Measured(bytes, locked.StorageQuota())
		of, was, is = locked, locked.StorageStatus, to.Status
		return move(ctx, s.base, tx, locked, to, audit.System, nil)
	})
	if err == nil && was != is {
		s.base.Journal.Log(ctx, ports.JournalEvent{What: "storage." + string(is), DatabaseID: r.ID, ServerID: of.ServerID})
		s.base.Crash(CrashDecided)
	}
	return err
}
