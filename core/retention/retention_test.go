package retention_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/core/upload"
)

const op, other = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

func TestWhatGoes(t *testing.T) {
	limit := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old := limit.Add(-time.Nanosecond)
	ended := operation.Operation{ID: op, DatabaseID: other, Status: operation.Failed, FinishedAt: &old}
	recent, open := ended, ended
	recent.FinishedAt = &limit
	open.FinishedAt, open.Status = nil, operation.Running
	needed := func(n retention.Needs) retention.Entry { return retention.OfOperation(ended, n) }
	key := idempotency.Record{ResourceID: op, CreatedAt: old}
	for what, c := range map[string]struct {
		entry retention.Entry
		goes  bool
	}{
		"an operation that nothing names":         {needed(retention.Needs{}), true},
		"an operation that ended at the limit":    {retention.OfOperation(recent, retention.Needs{}), false},
		"an operation that is open":               {retention.OfOperation(open, retention.Needs{}), false},
		"the operation of a backup that is there": {needed(retention.Needs{Backups: []backup.Backup{{OperationID: op}}}), false},
		"an operation beside others' backups":     {needed(retention.Needs{Backups: []backup.Backup{{OperationID: other}}}), true},
		"the operation of an upload":              {needed(retention.Needs{Uploads: []upload.Upload{{OperationID: op}}}), false},
		"the operation that deleted":              {needed(retention.Needs{Tombstone: &deletion.Tombstone{OperationID: op}}), false},
		"the operation that recovered":            {needed(retention.Needs{Tombstone: &deletion.Tombstone{RecoveryID: op}}), false},
		"an operation beside another's tombstone": {
			needed(retention.Needs{Tombstone: &deletion.Tombstone{OperationID: other}}), true,
		},
		"the last change of query timeouts":         {needed(retention.Needs{Database: timeouts(op)}), false},
		"a change of query timeouts before another": {needed(retention.Needs{Database: timeouts(other)}), true},

		"a key":                         {retention.OfKey(key, nil), true},
		"a key at the limit":            {retention.OfKey(idempotency.Record{CreatedAt: limit}, nil), false},
		"the key of an open operation":  {retention.OfKey(key, []operation.Operation{open}), false},
		"the key of an ended operation": {retention.OfKey(key, []operation.Operation{ended}), true},
		"the key of a database that is worked on": {
			retention.OfKey(idempotency.Record{ResourceID: other, CreatedAt: old}, []operation.Operation{open}), false,
		},
	} {
		if got := c.entry.Gone(limit); got != c.goes {
			t.Errorf("%s: it goes is %t", what, got)
		}
	}
}

func timeouts(last id.OperationID) *database.Record {
	var r database.Record
	r.TimeoutOperation = last
	return &r
}

func TestDefaultsHold(t *testing.T) {
	if err := (retention.Policy)(nil).Check(); err != nil {
		t.Error(err)
	}
	for _, k := range retention.Kinds() {
		if b := k.Bounds(); b.Least <= 0 || b.Default < b.Least {
			t.Errorf("%s: %+v", k, b)
		}
	}
}

// A length of time that is taken is within its bounds, and is written as the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"400d", "36h", "0d", "1h30m", "-1d", "36501d", "99999999999999999999d", "d", "", "1e3d", "876001h",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := retention.Parse(text)
		if err != nil {
			return
		}
		if d < 0 || d > 36500*24*time.Hour {
			t.Errorf("%q is %s", text, d)
		}
		if again, err := retention.Parse(retention.Format(d)); err != nil || again != d {
			t.Errorf("%q is %s, and written again %s (%v)", text, d, again, err)
		}
	})
}
