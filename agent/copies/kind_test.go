package copies

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Nothing is kept of a peer, whose token is a secret, once the result of the load is stored: the command that fetches it names
// the peer again.
func TestAPeerIsForgottenWithTheResult(t *testing.T) {
	const op id.OperationID = "44444444-4444-4444-8444-444444444444"
	x := &Copies{Deps: &Deps{Peers: peer.NewKnown()}}
	x.Peers.Patience = time.Millisecond
	k := x.kind()
	c := command.Load{Source: command.Source{AtPeer: true}, Peer: command.Peer{URL: "https://127.0.0.1:1"}}
	for _, known := range []bool{true, false} {
		k.Told(op, c)
		if !known {
			k.Over(op, c)
		}
		_, err := x.Peers.Begun(t.Context(), op, "20260301_120000.sql.gz")
		if err == nil || strings.Contains(err.Error(), "nobody has said where it is") == known {
			t.Errorf("known: %t, %v", known, err)
		}
	}
}
