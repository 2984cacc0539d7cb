package pooler

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// tracksReadOnly reports whether PgBouncer tracks default_transaction_read_only, as it does since 1.26: each client then has a
// value of its own, which PgBouncer sets on the server connection that the client gets.
func tracksReadOnly(t *testing.T, s *stack) bool {
	t.Helper()
	var major, minor int
	err := s.pooler.each(t.Context(), "SHOW VERSION", func(r row) error {
		_, err := fmt.Sscanf(r.text("version"), "PgBouncer %d.%d.", &major, &minor)
		return err
	})
	check.NoError(t, err)
	return major > 1 || minor >= 26
}

// wantReadOnly holds how transactions begin that say nothing of it themselves.
func wantReadOnly(t *testing.T, what string, in interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, want bool) {
	t.Helper()
	var got bool
	if err := in.QueryRowContext(t.Context(), "SELECT current_setting('transaction_read_only')::bool").Scan(&got); err != nil {
		t.Errorf("%s: %v", what, err)
	} else if got != want {
		t.Errorf("%s: read only is %t, want %t", what, got, want)
	}
}

// TestReadOnlySettingIsItsClientsOwn holds that no other client gets what one has set, and the client itself only what PgBouncer
// tracks of a transaction that was committed.
func TestReadOnlySettingIsItsClientsOwn(t *testing.T) {
	s := realStack(t)
	mine, other := s.into(t, "shop.transaction", "shop"), s.into(t, "shop.transaction", "shop")
	set := func(statement string) {
		if _, err := mine.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for statement, stays := range map[string]bool{
		"BEGIN; SET default_transaction_read_only = on; ROLLBACK":     false,
		"BEGIN; SET LOCAL default_transaction_read_only = on; COMMIT": false,
		"BEGIN; SET default_transaction_read_only = on; COMMIT":       tracksReadOnly(t, s),
		"SET default_transaction_read_only = on":                      tracksReadOnly(t, s),
	} {
		set(statement)
		wantReadOnly(t, statement+": another client", other, false)
		wantReadOnly(t, statement+": a new client", s.into(t, "shop.transaction", "shop"), false)
		wantReadOnly(t, statement+": itself", mine, stays)
		set("SET default_transaction_read_only = off")
		wantReadOnly(t, statement+", and off again", mine, false)
	}
}

// TestReadOnlyDatabaseReachesPooledClients changes the default of a database. After RECONNECT new clients have it. A client that
// stays connected has it where PgBouncer does not track the setting; where it does, PgBouncer goes on to set the client's own
// value, so whoever wants the default to hold for all has to close the clients.
func TestReadOnlyDatabaseReachesPooledClients(t *testing.T) {
	s := realStack(t)
	client := s.into(t, "shop.transaction", "shop")
	wantReadOnly(t, "before", client, false)
	t.Cleanup(func() {
		execute(t, s, "ALTER DATABASE shop RESET default_transaction_read_only")
		settle(t, s)
	})
	execute(t, s, "ALTER DATABASE shop SET default_transaction_read_only = on")
	settle(t, s)
	for _, entry := range EntryNames("shop") {
		wantReadOnly(t, entry+", a new client", s.into(t, entry, "shop"), true)
	}
	wantReadOnly(t, "a client that stayed", client, !tracksReadOnly(t, s))
	check.NoError(t, s.pooler.Evict(t.Context(), OfDatabase("shop")))
	if err := client.PingContext(t.Context()); err == nil {
		t.Error("the client that stayed is still connected")
	}
	wantReadOnly(t, "a client that comes back", s.into(t, "shop.transaction", "shop"), true)
}
