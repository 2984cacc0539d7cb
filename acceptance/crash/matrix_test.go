package crash_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/drill"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/keyrings"
	"github.com/pgherd/pgherd/core/controlplane/looks"
	"github.com/pgherd/pgherd/core/controlplane/mails"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/rebuilds"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// flow is one thing that the service does, and how to see that it was done right.
type flow interface {
	// ready makes what the flow needs.
	ready(t *testing.T, w *world)
	// act asks for it. Whoever is asked may die over it.
	act(t *testing.T, w *world, api *stack.Host)
	// check sees whether the promise was kept, once everybody runs again and the work is finished.
	check(t *testing.T, w *world, api *stack.Host)
}

// interrupted is a flow that has something to do between one death and the next.
type interrupted interface{ between(t *testing.T, w *world) }

// repeated is a flow whose client asks again after the death: nobody else finishes the work, or only later.
type repeated interface{ repeat(t *testing.T, w *world) }

// leaving is a flow that can be begun so that only the batch host goes on with it.
type leaving interface{ leave(t *testing.T, w *world) }

// part is a process that can be killed.
type part string

const (
	inAPI   part = "api"
	inBatch part = "batch"
	inAgent part = "agent"

	// inServer is PostgreSQL of the customers, which crashes while the agent stands still at the point.
	inServer part = "server"
	// So does the object store, or it hangs, and is there again a little later.
	inStore       part = "store"
	inFrozenStore part = "frozen store"
)

// killing is one case: the part dies at each of the points, one after the other, while the flow is under way.
type killing struct {
	in     part
	points []string
	what   string
	flow   flow
	commit bool // the point is around a commit of an operation
}

func kill(in part, what string, f flow, points ...string) killing {
	return killing{in: in, points: points, what: what, flow: f}
}

func (k killing) name() string { return strings.Join(k.points, ",then,") + "/" + k.what }

func (k killing) run(t *testing.T, w *world) {
	k.flow.ready(t, w)
	api := w.api
	switch k.in {
	case inAPI:
		api = k.killAPI(t, w)
	case inBatch:
		k.killBatch(t, w)
	case inAgent:
		k.killAgent(t, w)
	case inServer:
		k.killServer(t, w)
	case inStore:
		k.loseStore(t, w, func() { w.store.Kill() }, w.store.Run)
	case inFrozenStore:
		k.loseStore(t, w, func() { w.store.Freeze(t) }, w.store.Thaw)
	}
	if f, ok := k.flow.(repeated); ok && k.in != inBatch {
		f.repeat(t, w)
	}
	w.asRecorded(t)
	k.flow.check(t, w, api)
	w.settled(t)
}

// killAPI kills a host that runs beside the others, and starts it again.
func (k killing) killAPI(t *testing.T, w *world) *stack.Host {
	t.Helper()
	if w.victim == nil {
		w.victim = must(w.StartAPI(soon(t), ""))(t)
	}
	noError(t, w.Arm(w.victim.Process, k.points[0]))
	k.flow.act(t, w, w.victim)
	dies(t, w.victim.Process, k.points[0])
	noError(t, w.victim.Restart(soon(t), ""))
	return w.victim
}

func (k killing) killBatch(t *testing.T, w *world) {
	t.Helper()
	if f, ok := k.flow.(leaving); ok {
		noError(t, w.batch.Stop(soon(t)))
		f.leave(t, w)
		noError(t, w.batch.Relaunch(k.points[0]))
	} else {
		noError(t, w.Arm(w.batch.Process, k.points[0]))
		k.flow.act(t, w, w.api)
	}
	dies(t, w.batch.Process, k.points[0])
	w.hurry(t)
	noError(t, w.batch.Restart(soon(t), ""))
}

func (k killing) killAgent(t *testing.T, w *world) {
	t.Helper()
	noError(t, w.Arm(w.agent, k.points[0]))
	k.flow.act(t, w, w.api)
	dies(t, w.agent, k.points[0])
	for _, point := range k.points[1:] {
		if more, ok := k.flow.(interrupted); ok {
			more.between(t, w)
		}
		w.agent = must(w.LaunchAgent(point))(t)
		dies(t, w.agent, point)
	}
	w.restartAgent(t)
}

func (k killing) killServer(t *testing.T, w *world) {
	t.Helper()
	k.whileStopped(t, w, func() { noError(t, w.Server.Restart(context.WithoutCancel(t.Context()), cluster.Immediate)) })
	w.reconnects(t)
}

// whileStopped does something while the agent stands still at the point.
func (k killing) whileStopped(t *testing.T, w *world, do func()) {
	t.Helper()
	noError(t, w.Arm(w.agent, crash.Stop+k.points[0]))
	k.flow.act(t, w, w.api)
	eventually(t, "the agent stands at "+k.points[0], func() (bool, string) {
		return w.agent.Frozen(), "it goes on"
	})
	do()
	noError(t, w.agent.Thaw())
}

// lost is how long the object store is away: the agent has tried again by then.
const lost = 2 * time.Second

func (k killing) loseStore(t *testing.T, w *world, away func(), back func(testing.TB)) {
	t.Helper()
	k.whileStopped(t, w, away)
	time.Sleep(lost)
	back(t)
}

// restartAgent starts an agent where none runs.
func (w *world) restartAgent(t testing.TB, extra ...string) {
	t.Helper()
	w.agent = must(w.LaunchAgent("", extra...))(t)
	noError(t, w.AwaitAgent(soon(t), w.agent))
}

// dies fails the test unless the process kills itself: a point that is never reached proves nothing.
func dies(t *testing.T, p *stack.Process, point string) {
	t.Helper()
	if err := p.AwaitEnd(soon(t)); err != nil {
		t.Fatalf("%s was never reached: %v", point, err)
	}
	if !p.Killed() {
		t.Fatalf("%s ended otherwise than by SIGKILL at %s", p.Name, point)
	}
	t.Logf("%s was killed at %s", p.Name, point)
}

// group are cases that share what they have made, and so a stack.
type group struct {
	name  string
	cases func() []killing
}

var groups = []group{
	{"creating", creating},
	{"opening and closing", func() []killing { return slices.Concat(openingAndClosing(), undoing(), allowing()) }},
	{"configuring", func() []killing { return slices.Concat(configuring(), exceeding()) }},
	{"backing up", backingUp},
	{"failing backups", failingBackups},
	{"making roles", func() []killing {
		return ofModels(func(m modelUnderTest) []killing {
			h := &shared{model: m}
			return append(makingRoles(h), optingIn(h)...)
		})
	}},
	{"changing roles", func() []killing {
		return ofModels(func(m modelUnderTest) []killing { return changingRoles(&shared{model: m}) })
	}},
	{"expiring and removing roles", func() []killing {
		return ofModels(func(m modelUnderTest) []killing {
			h := &shared{model: m, validity: "1h"}
			return slices.Concat(expiringRoles(h), removingRoles(h), revokingExpiredRoles(h), changingShutOutRoles(h))
		})
	}},
	{"rotating logins", func() []killing { return rotatingLogins(&shared{}, &shared{model: legacyRoles}) }},
	{"changing extensions", changingExtensions},
	{"restoring", restoring},
	{"restoring there", restoringThere},
	{"cloning", cloning},
	{"deleting", deleting},
	{"previewing", previewing},
}

// offsite are groups for a stack that keeps backups in an object store, most of them for another one too.
var offsite = []group{
	{"backing up", backingUp}, {"failing backups", failingBackups}, {"restoring", restoring}, {"restoring there", restoringThere},
	{"deleting", deleting}, {"losing the store", losingTheStore},
}

// archived are groups for a stack that keeps an archive.
var archived = []group{
	{"restoring a moment", restoringMoments}, {"looking at moments", lookingAtMoments}, {"proving a moment", drilling},
}

// TestKilledOverAMoment kills those who have a database back as it was.
func TestKilledOverAMoment(t *testing.T) {
	t.Parallel()
	for _, g := range sample.OneIn(t, len(archived), archived) {
		w := startStack(t, func(o *stack.Options) { o.Archive = true })
		runAll(t, w, sample.OneIn(t, 4, onePerPoint(g.cases())))
	}
}

// TestKilled kills at every point. Each group has a stack; of a sample, all share one, which by turns keeps its backups in an
// object store.
func TestKilled(t *testing.T) {
	if !sample.Whole() {
		killsSome(t)
		return
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			runAll(t, startStack(t), g.cases())
		})
	}
	for _, g := range offsite {
		t.Run(g.name+" offsite", func(t *testing.T) {
			t.Parallel()
			runAll(t, startOffsite(t), g.cases())
		})
	}
}

func killsSome(t *testing.T) {
	t.Helper()
	t.Parallel()
	const several = 96
	var all []killing
	for _, g := range groups {
		all = append(all, onePerPoint(g.cases())...)
	}
	if sample.Number(t)/several%2 == 0 {
		runAll(t, startStack(t), sample.OneIn(t, several, all))
		return
	}
	all = append(all, onePerPoint(losingTheStore())...)
	runAll(t, startOffsite(t), sample.OneIn(t, several, all))
}

// runAll runs the cases in one stack.
func runAll(t *testing.T, w *world, cases []killing) {
	t.Helper()
	for _, k := range cases {
		if !t.Run(k.name(), func(t *testing.T) { k.run(t, w) }) {
			t.Fatal("what this left would only confuse the next")
		}
	}
}

// onePerPoint is one case for each list of points. Where several have the same, they take turns. The points before commits of a
// kind count as one, and so do those after: the engine commits for every kind, and the core's tests kill around each commit. All
// crashes of PostgreSQL count as one, and so do those of the object store.
func onePerPoint(cases []killing) (some []killing) {
	same, points := map[string][]killing{}, []string{}
	for _, k := range cases {
		list := strings.Join(k.points, ",")
		if !slices.Contains([]part{inAPI, inBatch, inAgent}, k.in) {
			list = crash.Stop + string(k.in)
		}
		if k.commit {
			list, _, _ = strings.Cut(list, "-") // kind and side
		}
		if same[list] == nil {
			points = append(points, list)
		}
		same[list] = append(same[list], k)
	}
	for i, list := range points {
		some = append(some, same[list][i%len(same[list])])
	}
	return some
}

// aroundCommits are cases in which a part dies around commits of a kind of operation.
func aroundCommits(in part, k operation.Kind, what string, f func() flow, names ...string) (cases []killing) {
	for _, p := range around(k, names...) {
		one := kill(in, what, f(), p)
		one.commit = true
		cases = append(cases, one)
	}
	return cases
}

// around are the points around calls or commits of a kind of operation.
func around(k operation.Kind, names ...string) (points []string) {
	for _, name := range names {
		points = append(points, work.Before(k, name), work.After(k, name))
	}
	return points
}

// kinds is an engine with every kind of operation that the program has, which runs none.
func kinds(t testing.TB) *work.Engine {
	t.Helper()
	clock, store := fakeclock.New(), memstore.New()
	cp, err := controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Fleet: fakeagent.New(clock), Clock: clock, Entropy: fakeentropy.New(), Secrets: fakebox.New(),
	}, controlplane.Config{})
	noError(t, err)
	return cp.Work
}

// refusedChanges are the points of changes of logins that servers refuse. A removal fails also where something depends on the
// role.
func refusedChanges() (points []string) {
	for _, k := range role.Kinds {
		points = append(points, around(operation.Kind(k), "generation", "stuck", "close")...)
		if k != role.Removal {
			points = append(points, around(operation.Kind(k), "failed")...)
		}
	}
	return points
}

// kindPoints are those of every kind of operation.
func kindPoints(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(kinds(t).Points(), func(p string) bool {
		// Nobody knows then whether the dead server was reached, so the creation waits until that answers. The core's own tests
		// kill there, and have it come back. They kill changes of logins that a server refuses, too.
		// An operator's command dies over the end of a purge, see TestMetadataOfBeforeARecovery.
		// Comparisons and searches end as rescues do, by the same code.
		// They kill clones on another server, too; the agents' own tests kill those.
		return p == work.Before(databases.KindCreate, "moved") ||
			slices.Contains(around(clones.Kind, "admit_peer", "close_source"), p) ||
			slices.Contains(around(looks.KindComparison, "close", "failed", "canceled"), p) ||
			slices.Contains(around(looks.KindSearch, "close", "failed", "canceled"), p) || slices.Contains(refusedChanges(), p) ||
			slices.Contains(around(deletion.KindPurge, "failing", "rejoin", "removing", "failed"), p)
	})
}

// atTheAgent are flows that the agent's own tests kill in.
var atTheAgent = []string{
	"agent.settings.", "agent.extension.", "agent.delete.", "agent.archive.", "agent.forward.",
}

// Every point that the program has is hit by a case.
func TestEveryPointHasItsCase(t *testing.T) {
	t.Parallel()
	hit := map[string]bool{}
	for _, g := range slices.Concat(groups, archived) {
		for _, k := range g.cases() {
			for _, p := range k.points {
				hit[p] = true
			}
		}
	}
	points := slices.Concat(kindPoints(t), controlplane.CrashPoints, crash.Points)
	for _, p := range slices.Concat(backup.CrashPoints, copies.CrashPoints, archive.CrashPoints, drill.CrashPoints) {
		points = append(points, "agent."+p)
	}
	// Package webhooks kills there, or another test of this one.
	elsewhere := slices.Concat(webhooks.CrashPoints, mails.CrashPoints, keyrings.CrashPoints)
	for _, k := range []operation.Kind{rebuilds.Kind, adoptions.Kind, moves.Kind, rehearsals.Kind} {
		elsewhere = append(elsewhere, pointsOfKind(t, k)...) // a test of the kind's own kills there
	}
	elsewhere = append(elsewhere, moveAgentPoints()...) // TestServersKilledOverAMove does
	for _, p := range points {
		inAgent := slices.ContainsFunc(atTheAgent, func(flow string) bool { return strings.HasPrefix(p, flow) })
		if !hit[p] && !inAgent && !slices.Contains(elsewhere, p) {
			t.Errorf("no case kills at %s", p)
		}
		delete(hit, p)
	}
	for p := range hit {
		t.Errorf("a case kills at %s, which is no point of the program", p)
	}
}
