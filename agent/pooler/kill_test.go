package pooler

import (
	"errors"
	"slices"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
)

// PgBouncer refuses what is no ID of a client. The error has PgBouncer's message as the driver reads it, and not that of a client
// that is gone.
func TestARefusedKillSaysWhyAndHoldsUpNoOther(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	db := s.client("shop", "shop", "")
	defer db.Close()
	check.NoError(t, db.PingContext(ctx))
	clients := check.Must(s.pooler.Clients(ctx))(t)
	i := slices.IndexFunc(clients, func(c Client) bool { return c.Login == "shop" })
	if i < 0 {
		t.Fatalf("the client is not among %+v", clients)
	}
	const none = "nonsense"
	var answer *pq.Error
	if err := s.pooler.command(ctx, "KILL_CLIENT "+quoteDouble(none)); !errors.As(err, &answer) {
		t.Fatalf("PgBouncer says %v", err)
	}
	closed, err := s.pooler.kill(ctx, []string{"999999999", none, clients[i].ID})
	if want := "pooler: KILL_CLIENT: " + answer.Message; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if !slices.Equal(closed, []bool{false, false, true}) {
		t.Errorf("closed %v", closed)
	}
}

func TestTheTextOfAnErrorIsTheLastThatWasHeard(t *testing.T) {
	first := string(message('E', "SERROR\x00VERROR\x00C08P01\x00Mclient not found\x00HMaybe\x00\x00"))
	for said, want := range map[string]string{
		"":                            "",
		first:                         "client not found",
		string(message('N', first)):   "",
		string(message('E', "M\x00")): "",
		string(message('E', "SM\x00C57P01\x00\x00")):                  "",
		first + string(message('E', "SFATAL\x00Mshut down\x00F\x00")): "shut down",
		first + "E\x00\x00\x00\x30SFATAL\x00Mshut d":                  "shut d",
		first + "E\x00\x00\x00\x30SFATAL\x00C57":                      "client not found",
	} {
		if got := (&overheard{said: []byte(said)}).refusal(); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
