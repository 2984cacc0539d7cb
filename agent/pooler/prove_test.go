package pooler

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// Where others hold every server connection of an entry, a log-in still tells whether the password is right, also in a pool
// that no server connection was ever made for.
func TestFullEntryStillTellsPasswordsApart(t *testing.T) {
	s := realStack(t)
	for range 2 { // the transaction share of a cap of 8
		tx := begin(t, s.into(t, "shop.transaction", "shop"))
		defer func() { _ = tx.Rollback() }()
	}
	for what, c := range map[string]struct {
		login, password string
		prove, refused  error
	}{
		"right":         {"shop_rt", "shop_rt-pw", ErrNoServer, ErrAdmitted},
		"wrong":         {"shop_rt", "shop-pw", ErrRefused, nil},
		"unknown login": {"nobody", "shop-pw", ErrRefused, nil},
	} {
		for attempt := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := s.pooler.Prove(ctx, "shop.transaction", c.login, c.password); !errors.Is(err, c.prove) {
				t.Errorf("%s, attempt %d: %v, want %v", what, attempt, err, c.prove)
			}
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			if err := s.pooler.ProveRefused(ctx, "shop.transaction", c.login, c.password); !errors.Is(err, c.refused) {
				t.Errorf("%s, attempt %d: %v, want %v", what, attempt, err, c.refused)
			}
			cancel()
		}
	}
}

// A proof leaves no server connection of the login, which could not be used at the other entry, and ends nobody else's.
func TestProofClosesItsOwnServerConnection(t *testing.T) {
	s := realStack(t)
	settle(t, s)
	for _, entry := range EntryNames("shop") {
		tx := begin(t, s.into(t, entry, "shop"))
		check.NoError(t, s.pooler.Prove(t.Context(), entry, "shop", "shop-pw"), entry)
		left := func() (servers int) {
			err := s.pooler.each(t.Context(), "SHOW SERVERS", func(r row) error {
				if r.text("database") == entry {
					servers++
				}
				return nil
			})
			check.NoError(t, err)
			return servers
		}
		for began := time.Now(); left() != 1; time.Sleep(10 * time.Millisecond) { // server_idle_timeout is longer
			if time.Since(began) > time.Second {
				t.Fatalf("%s: %d server connections, want the customer's", entry, left())
			}
		}
		check.NoError(t, tx.Rollback(), "a customer's transaction beside the proof")
	}
}

// A login can have its transactions begin only when nobody else writes, for as long as somebody does.
func TestProofWaitsForNoSnapshot(t *testing.T) {
	s := realStack(t)
	for _, setting := range []string{"isolation = 'serializable'", "read_only = on", "deferrable = on"} {
		execute(t, s, "ALTER ROLE shop SET default_transaction_"+setting)
	}
	settle(t, s)
	t.Cleanup(func() {
		execute(t, s, "ALTER ROLE shop RESET ALL")
		settle(t, s)
	})
	tx := check.Must(s.super.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	check.Must(tx.Exec("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; CREATE TABLE written (); TABLE pooler.gate"))(t)
	for _, entry := range EntryNames("shop") {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		check.NoError(t, s.pooler.Prove(ctx, entry, "shop", "shop-pw"), entry)
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	client := check.Must(dial(ctx, s.settings, "shop", "shop", "shop-pw"))(t)
	defer client.close()
	if client.each(ctx, "SELECT 1", func(row) error { return nil }) == nil {
		t.Error("a transaction of the login began: the test shows nothing")
	}
}

// settle makes new clients have the settings that their logins now have. Since 1.26 PgBouncer tracks
// default_transaction_read_only: it gives to new clients of a pool, and sets on its server connections, the value that the
// pool's first server connection had.
func settle(t *testing.T, s *stack) {
	t.Helper()
	check.NoError(t, s.pooler.command(context.Background(), "RECONNECT"))
}

func TestAcceptanceIsReadFromWholeMessages(t *testing.T) {
	message := func(kind byte, code uint32, more string) []byte {
		m := binary.BigEndian.AppendUint32([]byte{kind}, uint32(8+len(more)))
		return append(binary.BigEndian.AppendUint32(m, code), more...)
	}
	asked, going, final := message('R', 10, "SCRAM-SHA-256\x00\x00"), message('R', 11, "r=x,s=y,i=4096"), message('R', 12, "v=z")
	failed := message('E', 12, "R\x00\x00\x00\x0c\x00\x00\x00\x0c")
	for what, c := range map[string]struct {
		said []byte
		want bool
	}{
		"nothing": {nil, false}, "asked": {asked, false}, "in the middle": {slices.Concat(asked, going), false},
		"accepted": {slices.Concat(asked, going, final), true}, "and then failed": {slices.Concat(asked, going, final, failed), true},
		"failed": {slices.Concat(asked, going, failed), false}, "cut off": {slices.Concat(asked, going[:10]), false},
		"length of nothing": {make([]byte, 40), false},
	} {
		if got := (&overheard{said: c.said}).acceptance(); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
	if (*overheard)(nil).acceptance() {
		t.Error("no connection")
	}
}
