package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/keyrings"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// ringWorld is an installation of hosts with rings of their own. The secrets of servers stand for all that is stored.
type ringWorld struct {
	t     *testing.T
	ctx   context.Context
	store *memstore.Store
	clock *fakeclock.Clock
	ports controlplane.Ports
	names int
}

func newRingWorld(t *testing.T) *ringWorld {
	w := &ringWorld{t: t, ctx: t.Context(), store: memstore.NewRerunning(), clock: fakeclock.New()}
	w.ports = controlplane.Ports{
		Store: w.store, Admissions: w.store, Fleet: fakeagent.New(w.clock), Clock: w.clock, Entropy: fakeentropy.New(),
	}
	return w
}

// ringHost is one process with its ring.
type ringHost struct {
	*controlplane.ControlPlane
	w    *ringWorld
	ring *fakebox.Ring
}

// process has not joined.
func (w *ringWorld) process(c controlplane.Config, keys ...keyring.Fingerprint) *ringHost {
	w.t.Helper()
	ring, p := fakebox.NewRing(keys...), w.ports
	p.Secrets, p.Ring = ring, ring
	return &ringHost{must(controlplane.New(p, c))(w.t), w, ring}
}

func (w *ringWorld) host(name string, keys ...keyring.Fingerprint) *ringHost {
	w.t.Helper()
	h := w.process(controlplane.Config{}, keys...)
	ok(w.t, h.Keyring.Join(w.ctx, name))
	return h
}

// writes stores two secrets of a server.
func (h *ringHost) writes() error {
	none := 0
	h.w.names++
	_, err := h.Operator.AddServer(h.w.ctx, operator.NewServer{
		Name: fmt.Sprintf("server-%d", h.w.names), AgentURL: "https://agent:8090", Secret: "5eabc1d2e3f405162738495a6b7c8d9e",
		PublicHost: "db.example.org",
		PublicPort: 6432, Capacity: 1, Connections: &none,
	})
	return err
}

// stored lists, of each server, the key that has sealed its secrets; it fails the test where that is not one, or where a host
// cannot open something that is stored.
func (w *ringWorld) stored(hosts ...*ringHost) string {
	w.t.Helper()
	var by []string
	of := map[string]string{}
	ok(w.t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.SealedValues().Next(ctx, "", 100)
		for _, v := range list {
			mark, _, _ := strings.Cut(string(v.Sealed), "\x00")
			if _, server, _ := strings.Cut(v.Ref, "/"); of[server] == "" {
				of[server], by = mark, append(by, mark)
			} else if of[server] != mark {
				w.t.Errorf("the secrets of %s are sealed by %s and %s", server, of[server], mark)
			}
			for _, h := range hosts {
				if _, err := h.ring.Open(v.Sealed, v.Context); err != nil {
					w.t.Errorf("%s, sealed by %s, cannot be opened by %v", v.Ref, mark, must(h.ring.Keys())(w.t).Keys)
				}
			}
		}
		return err
	}))
	slices.Sort(by)
	return strings.Join(by, " ")
}

func (w *ringWorld) known(h *ringHost) string {
	w.t.Helper()
	var list []string
	for _, k := range must(h.Keyring.Known(w.ctx))(w.t) {
		list = append(list, string(k.Fingerprint)+" "+string(k.Status))
	}
	return strings.Join(list, ", ")
}

// waits fails the test unless a change of the ring waits for these hosts.
func (w *ringWorld) waits(err error, names ...string) {
	w.t.Helper()
	var waiting *keyring.NotReadyError
	if !errors.As(err, &waiting) {
		w.t.Fatalf("it does not wait for %v: %v", names, err)
	}
	var got []string
	for _, h := range waiting.Hosts {
		got = append(got, h.Name)
		if !strings.Contains(err.Error(), h.Name) {
			w.t.Errorf("%s is not named in %q", h.Name, err)
		}
	}
	equal(w.t, "waits for", fmt.Sprint(got), fmt.Sprint(names))
}

func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error with %q", err, text)
	}
}

// The first ring is the installation's; a host with another one does not start, and a command with it encrypts nothing.
func TestTheFirstRingCounts(t *testing.T) {
	w := newRingWorld(t)
	empty, err := w.process(controlplane.Config{}, "A").Keyring.Empty(w.ctx)
	equal(t, "empty", empty && err == nil, true)
	a := w.host("a", "A")
	wrong := w.process(controlplane.Config{}, "B")
	says(t, wrong.Keyring.Join(w.ctx, "b"), "does not have the key A")
	says(t, wrong.Keyring.Ready(), "restore the ring from its backup")
	says(t, wrong.Keyring.Refresh(w.ctx), "does not have the key A")
	says(t, wrong.writes(), "does not have")
	equal(t, "hosts", len(must(a.Keyring.Hosts(w.ctx))(t)), 1)
	empty, err = a.Keyring.Empty(w.ctx)
	equal(t, "empty", empty, false)
	ok(t, err)
	log := must(a.Operator.InstallationAudit(w.ctx, ports.Page{}))(t)
	first := log[0].What
	equal(t, "log", fmt.Sprint(len(log), first.Action, first.Details), fmt.Sprint(1, audit.KeyringRegistered, "map[keys:A]"))
}

// Where secrets are stored from before rings were registered, the ring that opens them is registered, although a wrong one has
// written something.
func TestARingIsProvenOnWhatIsStored(t *testing.T) {
	w := newRingWorld(t)
	before := func(key keyring.Fingerprint) *ringHost {
		ring, p := fakebox.NewRing(key), w.ports
		p.Secrets = ring
		return &ringHost{must(controlplane.New(p, controlplane.Config{}))(t), w, ring}
	}
	right, wrong := before("A"), before("B")
	ok(t, errors.Join(right.writes(), wrong.writes(), right.writes()))
	says(t, w.process(controlplane.Config{}, "B").Keyring.Join(w.ctx, "b"), "opens 2 of 6 stored secrets")
	a := w.host("a", "C", "A")
	equal(t, "keys", w.known(a), "A old, C primary")
	ok(t, a.Rounds.Once(w.ctx))
	equal(t, "encrypted by", w.stored(), "B C C")
	equal(t, "done", must(a.Keyring.Known(w.ctx))(t)[1].ResealedAt != nil, true)
}

// Two hosts out of step during a change of keys read at any time what the other one writes.
func TestAKeyIsChangedOnTwoHosts(t *testing.T) {
	w := newRingWorld(t)
	a, b := w.host("a", "1"), w.host("b", "1")
	write := func(want string) {
		t.Helper()
		ok(t, errors.Join(a.writes(), b.writes()))
		equal(t, "encrypted by", w.stored(a, b), want)
	}
	promote := func() error { _, err := a.Keyring.Promote(w.ctx); return err }
	prune := func() error { _, err := a.Keyring.Prune(w.ctx, keyring.DefaultSettle); return err }
	write("1 1")
	refused(t, promote(), fault.ValidationError) // none is staged
	w.clock.Advance(time.Second)

	a.ring.Has("1", "2")
	ok(t, a.Keyring.Stage(w.ctx, "2"))
	ok(t, a.Keyring.Stage(w.ctx, "2"))
	refused(t, a.Keyring.Stage(w.ctx, "3"), fault.ValidationError)
	w.clock.Advance(time.Second)
	w.waits(promote(), "a", "b")
	ok(t, a.Keyring.Refresh(w.ctx))
	w.waits(promote(), "b")
	write("1 1 1 1")
	b.ring.Has("1", "2")
	ok(t, b.Keyring.Refresh(w.ctx))
	refused(t, promoteOf(b, "b"), fault.ValidationError) // it is alive
	ok(t, promote())
	equal(t, "keys", w.known(b), "1 old, 2 primary")
	equal(t, "encrypted by", w.stored(a, b), "2 2 2 2")
	write("1 2 2 2 2 2") // b has not heard of it

	refused(t, prune(), fault.ValidationError) // too soon
	w.clock.Advance(keyring.DefaultSettle)
	w.waits(prune(), "b")
	ok(t, b.Keyring.Refresh(w.ctx))
	write("1 2 2 2 2 2 2 2")
	ok(t, prune())
	equal(t, "keys", w.known(b), "1 retired, 2 primary")
	a.ring.Has("2")
	b.ring.Has("2")
	ok(t, errors.Join(a.Keyring.Refresh(w.ctx), b.Keyring.Refresh(w.ctx)))
	write("2 2 2 2 2 2 2 2 2 2")
	refused(t, a.Keyring.Stage(w.ctx, "1"), fault.ValidationError)
	var log []audit.Action
	for _, e := range must(a.Operator.InstallationAudit(w.ctx, ports.Page{}))(t) {
		if e.What.Action != audit.ServerAdded {
			log = append(log, e.What.Action)
		}
	}
	equal(t, "log", fmt.Sprint(log), "[keyring.pruned keyring.promoted keyring.staged keyring.registered]")
}

func promoteOf(h *ringHost, forget ...string) error {
	_, err := h.Keyring.Promote(h.w.ctx, forget...)
	return err
}

// A host whose ring loses the primary is not ready and writes nothing, until it has it again.
func TestARingIsLostWhileAHostRuns(t *testing.T) {
	w := newRingWorld(t)
	a := w.host("a", "1")
	ok(t, a.Keyring.Ready())
	a.ring.Has("9")
	says(t, a.writes(), "does not have")
	says(t, a.Keyring.Refresh(w.ctx), "does not have the key 1")
	says(t, a.Keyring.Ready(), "does not have the key 1")
	says(t, a.writes(), "does not have")
	a.ring.Has("9", "1")
	ok(t, a.Keyring.Refresh(w.ctx))
	ok(t, errors.Join(a.Keyring.Ready(), a.writes()))
	equal(t, "encrypted by", w.stored(a), "1")
}

// A host that cannot say what it has, and so cannot hear which key encrypts, is not ready once it may not encrypt any more.
func TestAHostIsNotConfirmed(t *testing.T) {
	w := newRingWorld(t)
	a := w.process(controlplane.Config{}, "1")
	says(t, a.Keyring.Ready(), "not confirmed")
	ok(t, errors.Join(a.Keyring.Join(w.ctx, "a"), a.Keyring.Ready()))
	w.clock.Advance(keyring.Trust)
	ok(t, a.Keyring.Ready())
	w.clock.Advance(time.Second)
	away, cancel := context.WithCancel(w.ctx)
	cancel()
	says(t, a.Keyring.Refresh(away), context.Canceled.Error())
	says(t, a.Keyring.Ready(), "not confirmed")
	ok(t, errors.Join(a.Keyring.Refresh(w.ctx), a.Keyring.Ready()))
}

// A host that is gone keeps a change waiting until it is forgotten, is started again, or is not heard of for a day. One that was
// stopped does not.
func TestHostsThatAreGone(t *testing.T) {
	w := newRingWorld(t)
	a, stopped := w.host("a", "1", "2"), w.host("stopped", "1")
	w.host("gone", "1")
	ok(t, errors.Join(stopped.Keyring.Leave(w.ctx), a.Keyring.Stage(w.ctx, "3")))
	later := func(d time.Duration, keys ...keyring.Fingerprint) {
		a.ring.Has(keys...)
		w.clock.Advance(d)
		ok(t, a.Keyring.Refresh(w.ctx))
	}
	later(time.Second, "1", "2", "3")
	w.waits(promoteOf(a), "gone")
	says(t, promoteOf(a, "gone"), "stop it first")
	says(t, promoteOf(a, "none"), `no host "none"`)
	later(keyring.GoneAfter, "1", "2", "3")
	w.waits(promoteOf(a), "gone")
	says(t, promoteOf(a), "--forget NAME")
	ok(t, promoteOf(a, "gone"))

	w.host("again", "1", "3")
	w.host("again", "1", "3", "4")
	boot := keyring.Boot{ID: "b1", At: w.clock.Now().Add(-time.Hour)}
	clone := keyring.Boot{ID: "b2", At: boot.At}
	ok(t, w.process(controlplane.Config{}, "1", "3").Keyring.JoinFrom(w.ctx, clone, "twin"))
	ok(t, w.process(controlplane.Config{}, "1", "3", "4").Keyring.JoinFrom(w.ctx, boot, "twin"))
	ok(t, a.Keyring.Stage(w.ctx, "4"))
	later(time.Second, "1", "3", "4")
	w.waits(promoteOf(a), "twin b2")
	ok(t, w.process(controlplane.Config{}, "1", "3", "4").Keyring.JoinFrom(w.ctx, clone, "twin"))
	ok(t, promoteOf(a))

	w.host("long gone", "4")
	ok(t, a.Keyring.Stage(w.ctx, "5"))
	later(keyring.ForgottenAfter+time.Second, "4", "5")
	ok(t, promoteOf(a))
	w.host("b", "5")
	equal(t, "hosts", len(must(a.Keyring.Hosts(w.ctx))(t)), 2)
}

// A promotion that was cut off is finished by any process, by its rounds or by the same command.
func TestAPromotionIsPickedUp(t *testing.T) {
	for _, point := range keyrings.CrashPoints {
		for _, by := range []string{"a round", "the command"} {
			t.Run(point+"/"+by, func(t *testing.T) {
				w := newRingWorld(t)
				a := w.host("a", "1", "2")
				ok(t, errors.Join(a.writes(), a.writes(), a.Keyring.Stage(w.ctx, "3")))
				a.ring.Has("1", "2", "3")
				ok(t, a.Keyring.Refresh(w.ctx))
				if !dies(func() { _ = promoteOf(w.process(mortal(point), "1", "2", "3")) }) {
					t.Fatal("the point was not hit")
				}
				ok(t, a.Keyring.Refresh(w.ctx))
				ok(t, a.writes())
				w.stored(a)
				if by == "a round" {
					ok(t, a.Rounds.Once(w.ctx))
				} else {
					ok(t, promoteOf(a))
				}
				equal(t, "encrypted by", w.stored(a), "3 3 3")
				refused(t, promoteOf(a), fault.ValidationError)
			})
		}
	}
}

// Keys that this ring lacks are not dropped while something may need them; what no key opens keeps nothing waiting.
func TestPruningKeepsWhatIsNeeded(t *testing.T) {
	w := newRingWorld(t)
	a := w.host("a", "2", "1")
	ok(t, a.writes())
	other := w.process(controlplane.Config{}, "1")
	ok(t, other.ring.SealWith("1"))
	ok(t, other.writes())
	a.ring.Has("2")
	ok(t, a.Keyring.Refresh(w.ctx))
	prune := func() (keyrings.Pruned, error) { return a.Keyring.Prune(w.ctx, 0) }
	_, err := prune()
	refused(t, err, fault.ValidationError)
	says(t, err, "2 stored secrets need a key")
	a.ring.Has("2", "1")
	lost := w.process(controlplane.Config{}, "9")
	ok(t, lost.ring.SealWith("9"))
	ok(t, lost.writes())
	done := must(prune())(t)
	equal(t, "dropped", fmt.Sprint(done.Dropped, done.Resealed.Changed, len(done.Resealed.Unreadable)), "[1] 2 2")
	equal(t, "encrypted by", w.stored(), "2 2 9")
}

// Metadata from before a change of the key need the ring of then; one that still has that key will do.
func TestMetadataThatWereRestored(t *testing.T) {
	w := newRingWorld(t)
	a := w.host("a", "1")
	ok(t, a.writes())
	restore := w.store.Backup()
	a.ring.Has("1", "2")
	ok(t, errors.Join(a.Keyring.Stage(w.ctx, "2"), a.Keyring.Refresh(w.ctx), promoteOf(a)))
	equal(t, "encrypted by", w.stored(a), "2")
	restore()
	ok(t, errors.Join(a.Keyring.Refresh(w.ctx), a.writes()))
	equal(t, "encrypted by", w.stored(a), "1 1")
	a.ring.Has("2")
	says(t, a.Keyring.Refresh(w.ctx), "does not have the key 1")
	says(t, a.writes(), "does not have")
}

func TestWithoutARing(t *testing.T) {
	w := newWorld(t)
	ok(t, errors.Join(w.Keyring.Join(w.ctx, "a"), w.Keyring.Refresh(w.ctx), w.Keyring.Ready(), w.Keyring.Leave(w.ctx)))
	refused(t, w.Keyring.Stage(w.ctx, "1"), fault.ValidationError)
}
