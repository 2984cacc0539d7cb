package controlplane_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// stolen presents the world's key, which is good at the customer's address alone, from elsewhere.
func (w *world) stolen() (access.Admission, error) {
	k := attempt(w.key)
	k.Class, k.Client = ratelimit.Read, netip.MustParseAddr("198.51.100.9")
	return w.Access.Admit(w.ctx, k)
}

func (w *world) bind(b keys.Bounds) account.Key {
	w.t.Helper()
	return must(w.Operator.BindKey(w.ctx, w.caller.Key.ID, b))(w.t)
}

func (w *world) bindTo(networks network.List) { w.bind(keys.Bounds{Networks: &networks}) }

// Who uses a key outside its networks, however often, takes nothing of its rate from those who may use it, is shut out like
// everybody with wrong keys, and is told of in the log once in a while.
func TestAStolenKeyTakesNothing(t *testing.T) {
	for name, used := range map[string]bool{"while the key is in use": true, "before it is used": false} {
		t.Run(name, func(t *testing.T) {
			w, counts := leasing(t)
			told := &spy{}
			w.ports.Journal = told
			w.ControlPlane = w.leasingHost()
			w.bindTo("203.0.113.7/32")
			left := manyReads
			if used {
				must(w.read(w.ControlPlane))(t)
				left--
			}
			for range 30 {
				a, err := w.stolen()
				if !fault.Has(err, fault.Unauthorized) || err.Error() != account.ErrUnauthorized().Error() || a.Caller.Known() {
					t.Fatalf("%+v, %v", a, err)
				}
			}
			refused(t, errOf(w.stolen()), fault.RateLimited) // the store says so, and from then on memory
			before := counts.leases.Load() + counts.finds.Load()
			for range 100 {
				refused(t, errOf(w.stolen()), fault.RateLimited)
			}
			if after := counts.leases.Load() + counts.finds.Load(); after > before {
				t.Errorf("%d look-ups for who is shut out", after-before)
			}
			equal(t, "what is left of the key's rate", w.reads(w.ControlPlane), left)

			equal(t, "lines of the log", len(told.events), 1)
			w.clock.Advance(10 * time.Minute)
			refused(t, errOf(w.stolen()), fault.Unauthorized)
			equal(t, "lines of the log, later", len(told.events), 2)
			line := told.events[0].Err.Error()
			if !strings.Contains(line, w.caller.Key.Prefix()+" ") || !strings.Contains(line, "198.51.100.9") ||
				strings.Contains(line, w.key) {
				t.Error(line)
			}
		})
	}
}

// Other bounds count from the next request on, also on a host that has leased the key's bucket.
func TestBoundsCountAtOnce(t *testing.T) {
	w, _ := leasing(t)
	must(w.read(w.ControlPlane))(t)
	must(w.stolen())(t)
	w.bindTo("203.0.113.0/24")
	refused(t, errOf(w.stolen()), fault.Unauthorized)
	must(w.read(w.ControlPlane))(t)
	w.bindTo("203.0.113.0/24 198.51.100.9/32")
	must(w.stolen())(t)
	w.bindTo("")
	must(w.stolen())(t)

	w.bind(keys.Bounds{Expires: &account.Expiry{After: time.Minute}})
	w.clock.Advance(time.Minute - time.Microsecond)
	must(w.read(w.ControlPlane))(t)
	w.clock.Advance(time.Microsecond)
	refused(t, errOf(w.read(w.ControlPlane)), fault.Unauthorized)
	w.bind(keys.Bounds{Expires: &account.Expiry{}})
	must(w.read(w.ControlPlane))(t)
}

// A replaced key keeps its bounds unless it gets others. One that has expired can be given another end, and be revoked.
func TestTheBoundsOfReplacedAndExpiredKeys(t *testing.T) {
	w := newWorld(t)
	office := network.List("203.0.113.0/24")
	hour, day := account.Expiry{After: time.Hour}, account.Expiry{After: 24 * time.Hour}
	first, _, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "x", Scope: account.FullAccount,
		Bounds: keys.Bounds{Expires: &hour, Networks: &office},
	})
	ok(t, err)
	second, text, err := w.Operator.ReplaceKey(w.ctx, first.ID, keys.Bounds{})
	ok(t, err)
	for _, key := range []account.Key{second, w.admit(text).Key} {
		if !key.ExpiresAt.Equal(w.clock.Now().Add(time.Hour)) || key.Networks != office {
			t.Errorf("%+v", key)
		}
	}
	w.clock.Advance(2 * time.Hour)
	_, _, err = w.Operator.ReplaceKey(w.ctx, second.ID, keys.Bounds{})
	refused(t, err, fault.ValidationError)
	third, text, err := w.Operator.ReplaceKey(w.ctx, second.ID, keys.Bounds{Expires: &day})
	ok(t, err)
	equal(t, "its networks", w.admit(text).Key.Networks, office)

	w.clock.Advance(25 * time.Hour)
	refused(t, errOf(w.Access.Admit(w.ctx, attempt(text))), fault.Unauthorized)
	must(w.Operator.BindKey(w.ctx, third.ID, keys.Bounds{Expires: &day}))(t)
	w.admit(text)
	past := account.Expiry{At: w.clock.Now()}
	refused(t, errOf(w.Operator.BindKey(w.ctx, third.ID, keys.Bounds{Expires: &past})), fault.ValidationError)
	w.clock.Advance(25 * time.Hour)
	ok(t, w.Operator.RevokeKey(w.ctx, third.ID))
	refused(t, errOf(w.Operator.BindKey(w.ctx, third.ID, keys.Bounds{Expires: &day})), fault.ValidationError)

	n := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "pipeline"))(t)
	ci, _, err := w.Operator.CreateCIKey(w.ctx, n.ID)
	ok(t, err)
	refused(t, errOf(w.Operator.BindKey(w.ctx, ci.ID, keys.Bounds{Expires: &day})), fault.ValidationError)
}
