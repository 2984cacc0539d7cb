package agent

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// Forwards is the suite of what two agents do for who still comes to a server that a database has left. host and port are the
// public address of the target.
func Forwards(t *testing.T, host string, port int, newPair func(t *testing.T) Pair) {
	for name, check := range map[string]func(*forwarding){
		"who comes is sent on":                      (*forwarding).sendsOn,
		"who comes before the drop is sent on":      (*forwarding).dropsLate,
		"a new verifier counts, and the former not": (*forwarding).changes,
		"nobody is sent on once it is ended":        (*forwarding).ends,
		"it ends by itself":                         (*forwarding).runsOut,
		"it is listed":                              (*forwarding).isListed,
		"who is not known is nobody's server":       (*forwarding).proves,
		"who comes back is sent on until it serves": (*forwarding).comesBack,
		"a name that is there is not sent on":       (*forwarding).isTaken,
		"a database that is made takes its name":    (*forwarding).givesWay,
		"a deleted database is told, too":           (*forwarding).toldWhileIsolated,
	} {
		t.Run(name, func(t *testing.T) {
			insistingOnBoth(t, newPair(t), func(t *testing.T, p Pair) {
				check(&forwarding{moving: movingOf(t, p), t: t, host: host, port: port, generation: 5})
			})
		})
	}
}

// forwarding is a database whose former server sends on.
type forwarding struct {
	*moving
	t          *testing.T
	host       string
	port       int
	generation int64
}

// moved moves the database.
func (f *forwarding) moved() {
	f.t.Helper()
	f.walk(f.t)
	f.arrives(f.t, true)
}

func (f *forwarding) forward(change func(*command.Forward)) (command.Forwarded, error) {
	f.t.Helper()
	f.generation++
	c := command.Forward{
		DatabaseID: f.make.DatabaseID, Name: f.make.Name, Host: f.host, Port: f.port, Generation: f.generation,
		Until: time.Now().AddDate(20, 0, 0), CA: must(ports.Ask(bounded(f.t), f.Target.Agent, command.AskCapabilities{}))(f.t).PublicCA,
	}
	if c.CA == "" {
		f.t.Fatal("the target does not say by what it is known")
	}
	for _, l := range f.make.Logins {
		c.Logins = append(c.Logins, command.Forwarding{Username: l.Username, Verifier: l.Verifier})
	}
	if change != nil {
		change(&c)
	}
	return ports.Do(bounded(f.t), f.Source.Agent, ports.Fence{}, c)
}

// welcomed has the target admit who is sent on, also where its allowlist admits nobody from there.
func (f *forwarding) welcomed(of command.Forwarded) {
	f.t.Helper()
	elsewhere := []netip.Prefix{netip.MustParsePrefix("203.0.113.9/32")}
	list := command.SetAllowlist{DatabaseID: f.make.DatabaseID, Networks: elsewhere, Generation: 9}
	noError(f.t, ports.Tell(bounded(f.t), f.Target.Agent, ports.Fence{}, list))
	noError(f.t, ports.Tell(bounded(f.t), f.Target.Agent, ports.Fence{}, command.Welcome{
		DatabaseID: f.make.DatabaseID, From: []netip.Addr{of.From}, Generation: f.generation,
	}))
}

// wantSent checks whether the logins get in at the source.
func (f *forwarding) wantSent(want bool) {
	f.t.Helper()
	for _, l := range f.make.Logins {
		f.wantSentAs(l, want)
	}
}

func (f *forwarding) wantSentAs(l command.Login, want bool) {
	f.t.Helper()
	if got := canLogIn(f.t, f.Source.Server, f.make.Name, l); got != want {
		f.t.Errorf("a log-in as %s by the source: %t, want %t", l.Username, got, want)
	}
}

func (f *forwarding) begun() {
	f.t.Helper()
	f.moved()
	f.wantSent(false)
	of, err := f.forward(nil)
	noError(f.t, err)
	if !of.From.IsValid() {
		f.t.Fatal("the source does not say where it comes from")
	}
	f.welcomed(of)
	f.wantSent(true)
}

func (f *forwarding) sendsOn() { f.begun() }

// dropsLate has the source send on before it drops the database: who has come by then stays.
func (f *forwarding) dropsLate() {
	f.walk(f.t)
	f.tell(f.t, f.Target, f.serving(true))
	f.wantSent(false)
	of, err := f.forward(nil)
	noError(f.t, err)
	f.welcomed(of)
	f.wantSent(true)
	sessions := f.at.sessions(f.t, f.make.Logins[0])
	f.tell(f.t, f.Source, command.Depart{DatabaseID: f.make.DatabaseID})
	wantAlive(f.t, sessions, true)
	f.wantSent(true)
}

// listed are what the source says of the database's forward; nil: it has none.
func (f *forwarding) listed() *command.InventoryForward {
	f.t.Helper()
	for _, one := range must(ports.Ask(bounded(f.t), f.Source.Agent, command.AskStrays{}))(f.t).Forwards {
		if one.DatabaseID == f.make.DatabaseID {
			return &one
		}
	}
	return nil
}

// isListed has the source say on whom it sends, as long as it does.
func (f *forwarding) isListed() {
	if has := f.listed(); has != nil {
		f.t.Errorf("it is listed before it begins: %+v", has)
	}
	f.begun()
	switch has := f.listed(); {
	case has == nil:
		f.t.Error("it is not listed")
	case has.Name != f.make.Name || has.Host != f.host || has.Port != f.port || has.Until.Before(time.Now()) || has.Failure != "":
		f.t.Errorf("it is listed as %+v", *has)
	}
	f.generation++
	noError(f.t, ports.Tell(bounded(f.t), f.Source.Agent, ports.Fence{}, command.EndForward{
		DatabaseID: f.make.DatabaseID, Generation: f.generation,
	}))
	if has := f.listed(); has != nil {
		f.t.Errorf("it is listed once it is ended: %+v", has)
	}
}

// changes has nobody sent on whose verifier is another one.
func (f *forwarding) changes() {
	f.begun()
	other := f.make.Logins[0]
	_, err := f.forward(func(c *command.Forward) { c.Logins = c.Logins[1:] })
	noError(f.t, err)
	f.wantSentAs(other, false)
	f.generation = 1
	_, err = f.forward(nil)
	wantReason(f.t, err, command.ReasonStale)
}

// proves has nobody sent on to a server that does not prove that it is the one, and the source say so.
func (f *forwarding) proves() {
	f.begun()
	_, err := f.forward(func(c *command.Forward) { c.CA = "" })
	noError(f.t, err)
	f.wantSent(false)
	if has := f.listed(); has == nil || has.Failure == "" {
		f.t.Errorf("it is listed as %+v", has)
	}
	_, err = f.forward(nil)
	noError(f.t, err)
	for _, l := range f.make.Logins {
		for _, entry := range []string{f.make.Name, f.make.Name + ".transaction"} {
			eventually(f.t, func() bool { // a pooler may have a refusal in mind, and give that once more
				session, err := f.Source.Server.LogIn(entry, l.Username, l.Password)
				if err == nil {
					session.Close()
				}
				return err == nil
			}, "%s is not sent on at %s once the server is known", l.Username, entry)
		}
	}
	f.wantSent(true)
	if has := f.listed(); has == nil || has.Failure != "" {
		f.t.Errorf("once it is known it is listed as %+v", has)
	}
}

func (f *forwarding) ends() {
	f.begun()
	for range 2 {
		f.generation++
		noError(f.t, ports.Tell(bounded(f.t), f.Source.Agent, ports.Fence{}, command.EndForward{
			DatabaseID: f.make.DatabaseID, Generation: f.generation,
		}))
		f.wantSent(false)
	}
}

// toldWhileIsolated has the target admit nobody any more of a database that is out of service: nobody gets in once it is back.
func (f *forwarding) toldWhileIsolated() {
	f.begun()
	noError(f.t, ports.Tell(bounded(f.t), f.Target.Agent, newFence(), command.Isolate{DatabaseID: f.make.DatabaseID}))
	f.generation++
	noError(f.t, ports.Tell(bounded(f.t), f.Target.Agent, ports.Fence{}, command.Welcome{
		DatabaseID: f.make.DatabaseID, From: []netip.Addr{}, Generation: f.generation,
	}))
	must(ports.Do(bounded(f.t), f.Target.Agent, newFence(), command.Rejoin{DatabaseID: f.make.DatabaseID, Open: true}))(f.t)
	f.wantSent(false)
}

func (f *forwarding) runsOut() {
	f.begun()
	_, err := f.forward(func(c *command.Forward) { c.Until = time.Unix(1, 0) })
	noError(f.t, err)
	f.wantSent(false)
}

func (f *forwarding) isTaken() {
	_, err := f.forward(nil)
	wantReason(f.t, err, command.ReasonNameTaken)
}

// givesWay has the source make a database of the name that it sends on for.
func (f *forwarding) givesWay() {
	f.begun()
	spec := newSpec(database.SingleLogin)
	spec.Name = f.make.Name
	for i, l := range spec.Logins {
		spec.Logins[i].Username = database.RoleNames(spec.DatabaseID, spec.Name).Of(l.Login)
	}
	noError(f.t, ports.Tell(bounded(f.t), f.Source.Agent, newFence(), spec))
	wantLogIn(f.t, f.Source.Server, spec, true)
	f.wantSent(false)
	_, err := f.forward(nil)
	wantReason(f.t, err, command.ReasonNameTaken)
}

// comesBack moves the database back, closed. Until customers are kept out for that, they are sent on as before; and as soon as it
// serves, they get in where they come.
func (f *forwarding) comesBack() {
	f.begun()
	back := *f.moving
	back.Pair = Pair{Source: f.Target, Target: f.Source, Peer: f.Back}
	back.fence, back.peer, back.token, back.closed = newFence(), f.Back, strings.Repeat("b", 40), true
	back.peer.Token = back.token
	back.dump.Followed = false
	back.tell(f.t, back.Target, back.make)
	f.wantSent(true)
	other := f.make.Logins[0]
	_, err := f.forward(func(c *command.Forward) { c.Logins = c.Logins[1:] })
	noError(f.t, err)
	f.wantSentAs(other, false)
	_, err = f.forward(nil)
	noError(f.t, err)
	back.admits(f.t)
	back.parts(f.t)
	f.wantSent(false)
	back.dumped(f.t)
	back.loaded(f.t)
	if has := f.listed(); has == nil {
		f.t.Error("it is not listed any more, before the database serves")
	}
	back.tell(f.t, back.Target, command.Serve{DatabaseID: f.make.DatabaseID, Open: true, Generation: 100})
	f.wantSent(true)
	if has := f.listed(); has != nil {
		f.t.Errorf("a database that serves is listed as sent on: %+v", has)
	}
	back.tell(f.t, back.Source, command.Depart{DatabaseID: f.make.DatabaseID})
	f.wantSent(true)
}
