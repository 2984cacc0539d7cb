package settings_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/querytimeout"
)

const db id.DatabaseID = "0189abcd-ef01-4234-8567-89abcdef0123"

func TestDesired(t *testing.T) {
	cases := map[string]struct {
		profile querytimeout.Profile
		storage database.StorageStatus
		want    command.Configure
	}{
		"a new database": {querytimeout.NotConfigured, database.StorageOK, command.Configure{}},
		"a profile": {querytimeout.Balanced, database.StorageOK, command.Configure{
			Timeouts: &command.Timeouts{StatementMs: 30_000, LockMs: 3_000, IdleInTransactionMs: 15_000},
		}},
		"a full database": {querytimeout.NotConfigured, database.StorageFull, command.Configure{ReadOnly: true}},
		"a profile of a closed one": {querytimeout.Short, database.StorageClosed, command.Configure{
			Timeouts: &command.Timeouts{StatementMs: 15_000, LockMs: 1_000, IdleInTransactionMs: 5_000}, ReadOnly: true, Closed: true,
		}},
	}
	for name, c := range cases {
		c.want.DatabaseID, c.want.Generation = db, 7
		got := settings.Desired(database.Record{ID: db, Settings: database.Settings{
			SettingsGeneration: 7, SettingsApplied: 3, TimeoutProfile: c.profile, StorageStatus: c.storage,
		}})
		if !reflect.DeepEqual(got, c.want) || got.Check() != nil {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A suspension closes a database, and changes nothing else.
func TestADatabaseOfASuspendedAccount(t *testing.T) {
	for _, status := range database.StorageOK.Values() {
		r := database.Record{Settings: database.Settings{TimeoutProfile: querytimeout.Short, StorageStatus: status}}
		want := settings.Desired(r)
		want.Closed = true
		r.Suspension = account.Suspension{}.Suspend("unpaid", time.Time{})
		if got := settings.Desired(r); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", status, got, want)
		}
	}
}

// A profile never undoes a quota, nor the other way round: each decides its own part alone.
func TestPartsOfTheSettingsKeepApart(t *testing.T) {
	profiles := rapid.SampledFrom(querytimeout.NotConfigured.Values())
	statuses := rapid.SampledFrom(database.StorageOK.Values())
	rapid.Check(t, func(t *rapid.T) {
		var r database.Record
		desired := func(p querytimeout.Profile, s database.StorageStatus) command.Configure {
			r.TimeoutProfile, r.StorageStatus = p, s
			return settings.Desired(r)
		}
		profile, status := profiles.Draw(t, "profile"), statuses.Draw(t, "status")
		was := desired(profile, status)
		other := desired(profiles.Draw(t, "another profile"), status)
		if other.ReadOnly != was.ReadOnly || other.Closed != was.Closed {
			t.Fatalf("a profile makes %+v of %+v", other, was)
		}
		other = desired(profile, statuses.Draw(t, "another status"))
		if !reflect.DeepEqual(other.Timeouts, was.Timeouts) {
			t.Fatalf("a quota makes %+v of %+v", other, was)
		}
	})
}
