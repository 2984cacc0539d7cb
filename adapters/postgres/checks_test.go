package postgres_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/webhook"
)

// allowed is what each column with a CHECK list may hold: the states and names of the core, all of them.
var allowed = map[string][]string{
	"accounts.plan":               texts(account.Free, account.Pro, account.Business),
	"api_keys.kind":               texts(account.AccountKey, account.CIKey),
	"api_keys.scope":              texts(account.FullAccount, account.SelectedDatabases),
	"memberships.role":            texts(member.Roles...),
	"invitations.role":            texts(member.Roles...),
	"invitations.status":          texts(member.Statuses...),
	"databases.status":            texts(database.Statuses...),
	"databases.role_model":        texts(database.Managed, database.SingleLogin),
	"databases.schedule":          texts(database.NoSchedule, database.Daily),
	"databases.environment":       texts("", database.Production, database.Staging, database.Development, database.Other),
	"databases.timeout_profile":   texts(querytimeout.NotConfigured.Values()...),
	"databases.timeout_effective": texts(querytimeout.NotConfigured.Values()...),
	"databases.storage_status":    texts(database.StorageOK.Values()...),
	"databases.overlay_status":    texts(database.OverlayStatuses...),

	"previews.scheduled_backup": texts(database.NoSchedule, database.Daily),
	"previews.lease_status":     texts(preview.Leases...),
	"tombstones.status_before":  texts(database.Active, database.Stopped, database.Error),

	"database_logins.login": texts(database.Managed.Logins()...),
	"operations.status":     texts(operation.Statuses...),
	"backups.trigger":       texts(backup.Triggers...),
	"backups.format":        {backup.FormatSQLGzip},

	"roles.status":         texts(role.Statuses...),
	"roles.access_profile": texts(role.ReadOnly, role.ReadWrite, role.Custom),
	"role_changes.kind":    texts(role.Kinds...),
	"role_changes.status":  texts(role.ChangeStatuses...),
	"role_changes.login":   texts(append([]database.Login{""}, database.Managed.Logins()...)...),

	"webhook_deliveries.status": texts(webhook.DeliveryStatuses...),

	"keyring_keys.status": texts(keyring.Statuses...),

	"mails.kind":     texts(mail.Kinds...),
	"drills.outcome": texts(append([]drill.Outcome{""}, drill.Outcome("").Values()...)...),

	"drains.state": texts(move.DrainStates...),

	"mails.status": texts(mail.Statuses...),
	"mails.role":   texts("", account.Admin, account.Developer, account.Viewer),

	"sessions.status":    texts(person.Statuses...),
	"sessions.proved_by": texts(person.AllMeans...),
}

func texts[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

var literal = regexp.MustCompile(`'([^']*)'::text`)

func TestChecksHoldTheStatesOfTheCore(t *testing.T) {
	rows, err := migrated(t).Open(t).Query(`
		SELECT c.conrelid::regclass || '.' || a.attname, pg_get_constraintdef(c.oid)
		FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
		WHERE c.contype = 'c' AND cardinality(c.conkey) = 1 AND c.connamespace = 'public'::regnamespace`)
	check.NoError(t, err)
	defer rows.Close()
	checked := map[string]bool{}
	for rows.Next() {
		var column, definition string
		check.NoError(t, rows.Scan(&column, &definition))
		var listed []string
		for _, match := range literal.FindAllStringSubmatch(definition, -1) {
			listed = append(listed, match[1])
		}
		if len(listed) == 0 {
			continue // a range, not a list
		}
		checked[column] = true
		want := slices.Clone(allowed[column])
		slices.Sort(want)
		slices.Sort(listed)
		if !slices.Equal(listed, want) {
			t.Errorf("%s may hold %q, the core has %q", column, listed, want)
		}
	}
	check.NoError(t, rows.Err())
	for column := range allowed {
		if !checked[column] {
			t.Errorf("%s has no CHECK list", column)
		}
	}
}

func TestTheServersClockIsNeverAsked(t *testing.T) {
	db := migrated(t).Open(t)
	var defaults int
	row := db.QueryRow(`SELECT count(*) FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name <> 'goose_db_version'
		AND column_default !~ '^(-?[0-9]+|true|false|''[^'']*''::[a-z0-9 ]+(\[\])?)$'`)
	if err := row.Scan(&defaults); err != nil || defaults != 0 {
		t.Errorf("%d columns have defaults that are no constants (%v)", defaults, err)
	}
	var naive int
	row = db.QueryRow(`SELECT count(*) FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name <> 'goose_db_version'
		AND data_type IN ('timestamp without time zone', 'date', 'time without time zone')`)
	if err := row.Scan(&naive); err != nil || naive != 0 {
		t.Errorf("%d columns have times without a zone (%v)", naive, err)
	}
}

// An overlay has an ID, and without one there is no overlay.
func TestOverlaysHaveIDs(t *testing.T) {
	db := migrated(t)
	populate(t, db, 1)
	pool := db.Open(t)
	check.Must(pool.Exec("UPDATE databases SET overlay_status = 'reserved', overlay_id = id, overlay_generation = 7"))(t)
	for _, set := range []string{"overlay_status = 'none'", "overlay_id = NULL", "overlay_generation = -1"} {
		if _, err := pool.Exec("UPDATE databases SET " + set); err == nil {
			t.Errorf("%s was stored", set)
		}
	}
}
