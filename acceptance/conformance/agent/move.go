package agent

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// Pair is two servers, of which databases move from one to the other.
type Pair struct {
	Source, Target Stand
	// Peer is how the target's agent reaches the source's, without a token, and Back the reverse.
	Peer, Back command.Peer
}

// moveCases are each about a database of its own.
var moveCases = map[string]func(t *testing.T, p Pair){
	"move while customers work":       moveFollowed,
	"move of a closed database":       moveClosed,
	"move again is the same":          moveAgain,
	"move undone after each step":     moveUndone,
	"move of what was altered":        moveAltered,
	"move with somebody in the way":   moveNotDeparted,
	"move is not opened on its way":   moveNotOpened,
	"move that is given up later":     moveGivenUpLater,
	"move without what it needs":      moveOfNothing,
	"move shows what is in its way":   moveObstructed,
	"move of a stopped database":      moveStopped,
	"move to a server without a peer": moveNotAdmitted,
	"move that is rehearsed":          moveRehearsed,
	"move of a file not complete yet": moveOverlapping,
	"move by another copy":            moveUnprepared,
}

// Moves is the suite of what two agents do to move databases, of which a sample has one in several cases.
func Moves(t *testing.T, several int, newPair func(t *testing.T) Pair) {
	for _, name := range sample.OneIn(t, several, slices.Sorted(maps.Keys(moveCases))) {
		t.Run(name, func(t *testing.T) { insistingOnBoth(t, newPair(t), moveCases[name]) })
	}
}

// moving is a database on its way, with a table "before" that has a primary key.
type moving struct {
	Pair
	at     *stage // at the source
	to     *stage // the same at the target
	fence  ports.Fence
	peer   command.Peer
	token  string
	make   command.EnsureDatabase // closed
	dump   command.Backup
	parted command.Parted
	closed bool // nothing is followed
}

func movingOf(t *testing.T, p Pair) *moving {
	t.Helper()
	m := &moving{Pair: p, at: admitted(t, p.Source), fence: newFence(), token: strings.Repeat("t", 40), peer: p.Peer}
	did(t, p.Source.Server.Load(m.at.spec.Name, "CREATE TABLE before (n int PRIMARY KEY);\n"), "a table")
	to := *m.at
	to.Stand = p.Target
	to.Stand.roles = m.at.roles
	m.to, m.make, m.peer.Token = &to, m.at.spec, m.token
	m.make.Closed = true
	m.dump = command.Backup{DatabaseID: m.make.DatabaseID, Filename: passingName, Passing: true, Followed: true}
	return m
}

// steps are the steps of a move in their order, up to where the target has everything.
func (m *moving) steps() []func(t *testing.T) {
	steps := []func(t *testing.T){m.prepared, m.admits, m.dumped, m.loaded, m.follows, m.parts, m.takes}
	if m.closed {
		m.dump.Followed = false
		steps = []func(t *testing.T){m.prepared, m.admits, m.parts, m.dumped, m.loaded}
	}
	return steps
}

// partsAt is after how many steps customers are kept out.
func (m *moving) partsAt() int {
	if m.closed {
		return 3
	}
	return 6
}

func (m *moving) walk(t *testing.T) {
	t.Helper()
	for _, step := range m.steps() {
		step(t)
	}
}

func (m *moving) tell(t *testing.T, s Stand, c command.Command) {
	t.Helper()
	noError(t, refusal(s.Agent.Do(bounded(t), m.fence, c)))
}

func (m *moving) prepared(t *testing.T) {
	t.Helper()
	m.tell(t, m.Target, m.make)
	m.tell(t, m.Target, preparation(m.at.role))
}

func (m *moving) admits(t *testing.T) {
	t.Helper()
	m.tell(t, m.Source, command.AdmitPeer{
		DatabaseID: m.make.DatabaseID, TokenSHA256: command.HashToken(m.token), Generation: m.at.generation(),
	})
}

func (m *moving) dumped(t *testing.T) {
	t.Helper()
	if report := finish(t, m.Source, m.fence, m.dump); report.State != command.BackupDone {
		t.Fatalf("the file: %+v", report)
	}
}

func (m *moving) loading() command.Load {
	return command.Load{DatabaseID: m.make.DatabaseID, Moving: true, Peer: m.peer, Source: command.Source{
		DatabaseID: m.make.DatabaseID, Filename: passingName, Passing: true, AtPeer: true,
	}}
}

func (m *moving) loaded(t *testing.T) {
	t.Helper()
	if report := loaded(t, m.Target, m.fence, m.loading()); report.State != command.LoadReady {
		t.Fatalf("the copy: %+v", report)
	}
	m.tell(t, m.Target, m.switching())
}

func (m *moving) switching() command.Switch {
	return command.Switch{DatabaseID: m.make.DatabaseID, Moving: true}
}

func (m *moving) following() command.Follow {
	return command.Follow{DatabaseID: m.make.DatabaseID, Peer: m.peer}
}

// follows waits until little is missing.
func (m *moving) follows(t *testing.T) {
	t.Helper()
	report := over(t, m.Target, m.fence, m.following(), func(r command.FollowReport) (bool, int) {
		return r.State == command.Following, 0
	})
	if report.State != command.FollowedNear {
		t.Fatalf("following: %+v", report)
	}
}

func (m *moving) parting() command.Part {
	return command.Part{DatabaseID: m.make.DatabaseID, Closed: m.closed}
}

func (m *moving) parts(t *testing.T) {
	t.Helper()
	m.parted = must(ports.Do(bounded(t), m.Source.Agent, m.fence, m.parting()))(t)
}

func (m *moving) taking() command.Take {
	return command.Take{DatabaseID: m.make.DatabaseID, Parted: m.parted}
}

func (m *moving) takes(t *testing.T) {
	t.Helper()
	for ctx := bounded(t); ; {
		err := ports.Tell(ctx, m.Target.Agent, m.fence, m.taking())
		if !command.RefusedFor(err, command.ReasonUnfinished) {
			noError(t, err)
			return
		}
	}
}

func (m *moving) serving(open bool) command.Serve {
	return command.Serve{
		DatabaseID: m.make.DatabaseID, Open: open, Generation: 2, Roles: []command.AdmitRole{m.at.role},
	}
}

// arrives has the target serve, and the source give the database up.
func (m *moving) arrives(t *testing.T, open bool) {
	t.Helper()
	m.tell(t, m.Target, m.serving(open))
	m.tell(t, m.Source, command.Depart{DatabaseID: m.make.DatabaseID})
}

// wantThere checks that the database is the target's, with everything, and of the source no more.
func (m *moving) wantThere(t *testing.T, open bool) {
	t.Helper()
	for _, l := range append(slices.Clone(m.make.Logins), m.at.login) {
		m.to.wantIn(t, l, open)
	}
	if !m.Target.Server.HasTable(m.make.Name, "before") {
		t.Error("the target does not have the table")
	}
	if slices.Contains(m.Source.Server.Databases(), m.make.Name) || slices.Contains(m.Source.Server.Logins(), m.make.Name) {
		t.Error("the source still has the database")
	}
	for _, s := range []Stand{m.Source, m.Target} {
		wantReason(t, ports.Close(bounded(t), s.Agent, m.fence), command.ReasonCompleted)
		if left := filesBelow(t, s, "passing/"+string(m.make.DatabaseID)+"/"); len(left) > 0 {
			t.Errorf("there is still %v", left)
		}
	}
}

// wantBack checks that the database is the source's as ever, and nothing of it the target's.
func (m *moving) wantBack(t *testing.T, open bool) {
	t.Helper()
	for _, l := range append(slices.Clone(m.make.Logins), m.at.login) {
		m.at.wantIn(t, l, open)
	}
	wantNothing(t, m.Target.Server, m.make)
	for _, s := range []Stand{m.Source, m.Target} {
		if left := filesBelow(t, s, "passing/"+string(m.make.DatabaseID)+"/"); len(left) > 0 {
			t.Errorf("there is still %v", left)
		}
	}
}

func (m *moving) undo(t *testing.T) {
	t.Helper()
	for _, s := range []Stand{m.Target, m.Source, m.Target, m.Source} {
		noError(t, ports.Close(bounded(t), s.Agent, m.fence))
	}
}

// write adds a row.
func (m *moving) write(t *testing.T, at Stand) {
	t.Helper()
	did(t, at.Server.Load(m.make.Name, "INSERT INTO before SELECT count(*) FROM before;\n"), "a row")
}

func moveFollowed(t *testing.T, p Pair) {
	m := movingOf(t, p)
	sessions := m.at.sessions(t, m.at.login)
	for _, step := range []func(t *testing.T){m.prepared, m.admits, m.dumped, m.loaded, m.follows} {
		step(t)
		m.write(t, p.Source)
		wantAlive(t, sessions, true)
		for _, l := range m.make.Logins {
			m.to.wantIn(t, l, false)
		}
	}
	m.parts(t)
	wantAlive(t, sessions, false)
	m.at.wantIn(t, m.at.login, false)
	if m.parted.Position == "" {
		t.Error("the source does not say where its changes end")
	}
	m.takes(t)
	m.arrives(t, true)
	m.wantThere(t, true)
	if n := p.Target.Server.Rows(m.make.Name, "before"); n != 5 {
		t.Errorf("the target has %d rows of 5", n)
	}
	m.tell(t, p.Source, command.Leave{DatabaseID: m.make.DatabaseID})
	access := command.SetAccess{DatabaseID: m.make.DatabaseID, Generation: 3, Disconnect: true}
	noError(t, ports.Tell(bounded(t), p.Target.Agent, newFence(), access))
	m.to.wantIn(t, m.at.login, false)
}

// The copy is begun as soon as the file is, and ends with it.
func moveOverlapping(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.write(t, p.Source)
	m.prepared(t)
	m.admits(t)
	must(ports.Do(bounded(t), p.Source.Agent, m.fence, m.dump))(t)
	for range 3 {
		if report := must(ports.Do(bounded(t), p.Target.Agent, m.fence, m.loading()))(t); report.State == command.LoadFailed {
			t.Fatalf("the copy: %+v", report)
		}
	}
	for _, step := range m.steps()[2:] {
		step(t)
	}
	m.arrives(t, true)
	m.wantThere(t, true)
	if n := p.Target.Server.Rows(m.make.Name, "before"); n != 1 {
		t.Errorf("the target has %d rows of 1", n)
	}
}

// The file is made when nobody is in any more, and nothing is followed.
func moveClosed(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.closed = true
	did(t, p.Source.Server.Load(m.make.Name, "CREATE TABLE heap (n int);\nINSERT INTO heap VALUES (1);\n"), "a table")
	m.walk(t)
	m.at.wantIn(t, m.at.login, false)
	m.arrives(t, true)
	m.wantThere(t, true)
	if n := p.Target.Server.Rows(m.make.Name, "heap"); n != 1 {
		t.Errorf("the target has %d rows of 1", n)
	}
}

// Whoever takes the operation over begins with its first step, wherever it was.
func moveAgain(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.write(t, p.Source)
	m.walk(t)
	first := m.parted
	m.fence.Epoch++
	m.walk(t)
	if !reflect.DeepEqual(m.parted, first) {
		t.Errorf("first %+v, then %+v", first, m.parted)
	}
	m.arrives(t, true)
	m.write(t, p.Target)
	m.fence.Epoch++
	m.arrives(t, true)
	m.wantThere(t, true)
	if n := p.Target.Server.Rows(m.make.Name, "before"); n != 2 {
		t.Errorf("the target has %d rows of 2", n)
	}
	for range 2 {
		m.tell(t, p.Source, command.Leave{DatabaseID: m.make.DatabaseID})
	}
}

// A move that is closed before the target serves leaves everything as it was, whatever was done.
func moveUndone(t *testing.T, p Pair) {
	m := movingOf(t, p)
	for _, closed := range []bool{false, true} {
		m.closed, m.dump.Followed = closed, !closed
		for n := range len(m.steps()) + 1 {
			m.fence = newFence()
			sessions := m.at.sessions(t, m.at.login)
			for _, step := range m.steps()[:n] {
				step(t)
			}
			m.undo(t)
			m.wantBack(t, true)
			for _, c := range []command.Command{m.parting(), command.Depart{DatabaseID: m.make.DatabaseID}} {
				m.Source.refuses(t, m.fence, c, command.ReasonClosed)
			}
			for _, c := range []command.Command{m.make, m.switching(), m.following(), m.taking(), m.serving(true)} {
				m.Target.refuses(t, m.fence, c, command.ReasonClosed)
			}
			wantAlive(t, sessions, n < m.partsAt())
			for _, s := range sessions {
				s.Close()
			}
		}
	}
	m.fence, m.closed, m.dump.Followed = newFence(), false, true
	m.walk(t)
	m.arrives(t, true)
	m.wantThere(t, true)
}

// What is altered meanwhile ends the move, and nobody was kept out for it.
func moveAltered(t *testing.T, p Pair) {
	m := movingOf(t, p)
	for _, step := range m.steps()[:5] {
		step(t)
	}
	sessions := m.at.sessions(t, m.at.login)
	did(t, p.Source.Server.Load(m.make.Name, "CREATE TABLE after (n int PRIMARY KEY);\n"), "a table")
	p.Source.refuses(t, m.fence, m.parting(), command.ReasonAltered)
	wantAlive(t, sessions, true)
	m.undo(t)
	m.wantBack(t, true)
}

// A source that customers are in does not give the database up.
func moveNotDeparted(t *testing.T, p Pair) {
	m := movingOf(t, p)
	departing := command.Depart{DatabaseID: m.make.DatabaseID}
	p.Source.refuses(t, m.fence, departing, command.ReasonInService)
	for _, step := range m.steps()[:5] {
		step(t)
	}
	p.Source.refuses(t, m.fence, departing, command.ReasonInService)
	p.Source.refuses(t, m.fence, command.Leave{DatabaseID: m.make.DatabaseID}, command.ReasonInService)
	m.at.wantIn(t, m.at.login, true)
	m.undo(t)
	m.wantBack(t, true)
}

// A source that was never told to give the database up does so for an operation that has no record, whether customers are in it
// or not.
func moveGivenUpLater(t *testing.T, p Pair) {
	for _, moved := range []bool{true, false} {
		m := movingOf(t, p)
		if moved {
			m.walk(t)
			m.tell(t, p.Target, m.serving(true))
		}
		m.at.wantIn(t, m.at.login, !moved)
		unrecorded := ports.Fence{OperationID: newFence().OperationID}
		for _, c := range []command.Command{
			command.Part{DatabaseID: m.make.DatabaseID, Closed: true}, command.Depart{DatabaseID: m.make.DatabaseID},
			command.Leave{DatabaseID: m.make.DatabaseID},
		} {
			noError(t, refusal(p.Source.Agent.Do(bounded(t), unrecorded, c)))
		}
		if slices.Contains(p.Source.Server.Databases(), m.make.Name) || slices.Contains(p.Source.Server.Logins(), m.make.Name) {
			t.Error("the source still has the database")
		}
		m.to.wantIn(t, m.at.login, moved)
		if moved {
			noError(t, ports.Close(bounded(t), p.Source.Agent, m.fence))
		}
	}
}

// Until it serves, nobody opens the database at the target, nor takes it for one that stands.
func moveNotOpened(t *testing.T, p Pair) {
	m := movingOf(t, p)
	start := command.SetAccess{DatabaseID: m.make.DatabaseID, Generation: 2, Open: true}
	for n, step := range m.steps() {
		step(t)
		p.Target.refuses(t, newFence(), start, command.ReasonFailed)
		wantRefused(t, ports.Tell(bounded(t), p.Target.Agent, newFence(), command.Isolate{DatabaseID: m.make.DatabaseID}))
		if n < 6 {
			wantRefused(t, ports.Tell(bounded(t), p.Target.Agent, m.fence, m.serving(true)))
		}
		m.to.wantIn(t, m.make.Logins[0], false)
		start.Generation++
	}
	m.undo(t)
	m.wantBack(t, true)
}

// Each step needs what comes before it.
func moveOfNothing(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.prepared(t)
	p.Target.refuses(t, m.fence, m.following(), command.ReasonNotFound)
	p.Target.refuses(t, m.fence, command.Take{DatabaseID: m.make.DatabaseID}, command.ReasonNotFound)
	p.Target.refuses(t, m.fence, m.serving(true), command.ReasonNotFound)
	p.Source.refuses(t, m.fence, m.parting(), command.ReasonNotFound)
	m.undo(t)
	m.wantBack(t, true)
}

func moveObstructed(t *testing.T, p Pair) {
	g := stageOf(t, p.Source)
	ask := command.AskMovable{DatabaseID: g.spec.DatabaseID}
	did(t, p.Source.Server.Load(g.spec.Name, "CREATE TABLE good (n int PRIMARY KEY);\n"), "a table")
	free := must(ports.Ask(bounded(t), p.Source.Agent, ask))(t)
	if len(free.Obstacles) > 0 || free.More > 0 || free.SizeBytes == 0 {
		t.Errorf("in the way is %+v", free)
	}
	did(t, p.Source.Server.Load(g.spec.Name, "CREATE TABLE bare (n int);\nCREATE UNLOGGED TABLE quick (n int PRIMARY KEY);\n"+
		"INSERT INTO quick VALUES (1);\nCREATE MATERIALIZED VIEW seen AS SELECT 1 AS n;\n"), "obstacles")
	found := must(ports.Ask(bounded(t), p.Source.Agent, ask))(t)
	want := []command.Obstacle{
		{Kind: command.NoIdentity, Object: "public.bare"}, {Kind: command.Unlogged, Object: "public.quick"},
		{Kind: command.Materialized, Object: "public.seen"},
	}
	if !reflect.DeepEqual(found.Obstacles, want) {
		t.Errorf("in the way is %+v, want %+v", found.Obstacles, want)
	}
	nothing := command.AskMovable{DatabaseID: newSpec(database.SingleLogin).DatabaseID}
	wantReason(t, refusal(ports.Ask(bounded(t), p.Source.Agent, nothing)), command.ReasonNotFound)
}

// A stopped database is stopped there too, and is started as ever.
func moveStopped(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.at.setAccess(t, 7, false)
	m.walk(t)
	m.arrives(t, false)
	m.wantThere(t, false)
	noError(t, ports.Tell(bounded(t), p.Target.Agent, newFence(), command.SetAccess{
		DatabaseID: m.make.DatabaseID, Generation: 3, Open: true,
	}))
	m.to.wantIn(t, m.at.login, true)
}

// Who does not have the token of the operation gets nothing.
func moveNotAdmitted(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.prepared(t)
	m.reaches(t, false)
	m.admits(t)
	m.reaches(t, true)
	m.dumped(t)
	m.peer.Token = strings.Repeat("x", 40)
	m.reaches(t, false)
	if got := loaded(t, p.Target, m.fence, m.loading()); got.State != command.LoadFailed || got.Message == "" {
		t.Errorf("the copy: %+v", got)
	}
	m.undo(t)
	m.wantBack(t, true)
}

func (m *moving) reaches(t *testing.T, want bool) {
	t.Helper()
	found, err := ports.Ask(bounded(t), m.Target.Agent, command.ReachPeer{Operation: m.fence.OperationID, Peer: m.peer})
	noError(t, err)
	if want != (found.Why == "") {
		t.Errorf("the peer is reached: %t, %q", !want, found.Why)
	}
}

// A copy that does not bring along what a move does is none.
func moveUnprepared(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.prepared(t)
	m.admits(t)
	m.dumped(t)
	other := m.loading()
	other.Moving = false
	if got := loaded(t, p.Target, m.fence, other); got.State != command.LoadReady {
		t.Fatalf("the copy: %+v", got)
	}
	p.Target.refuses(t, m.fence, m.switching(), command.ReasonInvalid)
	m.undo(t)
	m.wantBack(t, true)
}

// A rehearsal leaves nothing, and its copy never becomes a database.
func moveRehearsed(t *testing.T, p Pair) {
	m := movingOf(t, p)
	m.dump.Followed = false
	schema := func() string {
		t.Helper()
		return must(ports.Ask(bounded(t), p.Source.Agent, command.AskMovable{DatabaseID: m.make.DatabaseID}))(t).SchemaSHA256
	}
	was := schema()
	m.write(t, p.Source)
	if now := schema(); now != was || now == "" {
		t.Errorf("the schema is %q, and after a row %q", was, now)
	}
	sessions := m.at.sessions(t, m.at.login)
	m.prepared(t)
	m.admits(t)
	m.dumped(t)
	loading := m.loading()
	loading.Compare, loading.Rehearsal = true, true
	for range 2 {
		if got := loaded(t, m.Target, m.fence, loading); got.State != command.LoadReady || len(got.Breaks) > 0 {
			t.Errorf("the rehearsal: %+v", got)
		}
	}
	m.Target.refuses(t, m.fence, m.switching(), command.ReasonNotFound)
	wantRefused(t, ports.Tell(bounded(t), p.Target.Agent, m.fence, m.serving(true)))
	m.to.wantIn(t, m.make.Logins[0], false)
	wantAlive(t, sessions, true)
	m.undo(t)
	m.wantBack(t, true)
	did(t, p.Source.Server.Load(m.make.Name, "CREATE TABLE after (n int PRIMARY KEY);\n"), "a table")
	if schema() == was {
		t.Error("a table does not change the schema")
	}
}
