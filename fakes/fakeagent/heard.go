package fakeagent

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// memory is how long the ledger remembers what it has heard.
const memory = 29 * 24 * time.Hour

// isUnvouched reports whether nobody has vouched for an operation that counts.
func (l *ledger) isUnvouched(o *operationState) bool {
	return o.unvouched && l.now().Sub(o.spokenAt) < memory
}

// heard are the operations that nobody has vouched for, and the last one that somebody has.
func (l *ledger) heard() (h command.Heard) {
	last := 0
	for _, of := range slices.Sorted(maps.Keys(l.operations)) {
		o := l.operations[of]
		switch {
		case l.isUnvouched(o) && len(h.Operations) < command.HeardAtOnce:
			h.Operations = append(h.Operations, of)
		case o.vouched > last && l.now().Sub(o.vouchedAt) < memory:
			h.Last, last = of, o.vouched
		}
	}
	h.More = len(h.Operations) == command.HeardAtOnce
	return h
}

func (l *ledger) vouch(q command.Vouch) {
	l.vouches++
	for of, o := range l.operations {
		switch {
		case q.All:
			o.unvouched, o.vouched = false, 0
		case o.unvouched && slices.Contains(q.Operations, of):
			o.unvouched, o.vouched, o.vouchedAt = false, l.vouches, l.now()
		}
	}
}

// vouchedFor refuses a database with an operation that nobody has vouched for, beside one, once anybody has vouched for any.
func (l *ledger) vouchedFor(db id.DatabaseID, but id.OperationID) error {
	if l.heard().Last == "" {
		return nil
	}
	resource := command.Purge{DatabaseID: db}.About().Resource
	for key := range l.commands {
		o := l.operations[key.operation]
		about := key.resource == resource || strings.HasPrefix(key.resource, resource+"/")
		if about && o != nil && l.isUnvouched(o) && key.operation != but {
			return command.Refuse(command.ReasonBehind, "nobody has vouched for an operation on the database")
		}
	}
	return nil
}
