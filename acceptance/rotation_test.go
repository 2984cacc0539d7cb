package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// TestTheRotationOfThePage rotates what an application logs in with by the script of docs/use/roles.md, on the real service.
// No statement of the application fails, and what it used before lets nobody in.
func TestTheRotationOfThePage(t *testing.T) {
	t.Parallel()
	page := contents(t, "../docs/use/roles.md")
	for _, command := range []string{"sh rotation.sh role shop app-a app-b ./deploy", "sh rotation.sh login shop runtime ./deploy"} {
		if !strings.Contains(page, command) {
			t.Errorf("the page does not say %s", command)
		}
	}
	w := driver.Stack(t)
	key := check.Must(w.Operator.NewKey(check.Must(w.Operator.NewAccount("pro"))(t)))(t)
	api := w.Hosts[0](key.Text)
	made := check.Must(api.Databases.Create(t.Context(), wire.CreateDatabase{Name: "rotated", DisplayName: "Rotated"}))(t)
	created := spec.Created{CreatedDatabase: made}
	check.Must(w.SQL.Run(created.Login(), "CREATE TABLE visit (at timestamptz)"))(t)
	roles := func() (names []string) {
		for _, r := range check.Must(api.Roles.List(t.Context(), made.ID, false))(t) {
			names = append(names, r.DisplayName)
		}
		return names
	}
	s := newRotation(t, api.URL, key.Text)

	first := check.Must(api.Roles.Create(t.Context(), made.ID, wire.CreateRole{
		DisplayName: "app-a", AccessProfile: role.ReadWrite, ConnectionLimit: 3,
	}))(t)
	old := check.Must(api.Roles.Reveal(t.Context(), made.ID, first.RoleID))(t)
	used := s.during(t, w, login(old.Username, old.Credential), "role", made.Name, "app-a", "app-b")
	if len(used) != 2 || used[0] != old.Username {
		t.Errorf("the application used %v", used)
	}
	if got := roles(); !slices.Equal(got, []string{"app-b"}) {
		t.Errorf("the roles are %v", got)
	}
	shutOut(t, w, login(old.Username, old.Credential))

	runtime := check.Must(api.Logins.Reveal(t.Context(), made.ID, database.RuntimeLogin))(t)
	used = s.during(t, w, login(runtime.Username, runtime.Credential), "login", made.Name, "runtime")
	if len(used) != 3 || used[0] != runtime.Username || used[2] != runtime.Username || used[1] == runtime.Username {
		t.Errorf("the application used %v", used)
	}
	if got := roles(); !slices.Equal(got, []string{"app-b"}) {
		t.Errorf("the roles are %v", got)
	}
	shutOut(t, w, login(runtime.Username, runtime.Credential))

	for _, bad := range [][]string{
		{}, {"rotate", made.Name, "app-b", "app-a", "true"}, {"role", made.Name, "app-b", "app-a"},
		{"role", made.Name, "app-z", "app-a", "true"}, {"role", made.Name, "app-b", `a"b`, "true"},
		{"role", made.Name, "app-b", "app-b", "true"}, {"login", made.Name, "owner", "true"},
		{"role", made.Name, "app-b", "app-c", "false"},
	} {
		if out, err := s.run(t, bad...); err == nil || out == "" && bad[len(bad)-1] != "false" {
			t.Errorf("%v: %q, %v", bad, out, err)
		}
	}
	if got := roles(); !slices.Equal(got, []string{"app-b", "app-c"}) {
		t.Errorf("after a deployment that failed, the roles are %v", got)
	}
}

func login(username string, c wire.Credential) spec.Login {
	return spec.Login{Database: c.Database, Username: username, Password: c.Password, From: spec.Home}
}

func shutOut(t *testing.T, w spec.World, l spec.Login) {
	t.Helper()
	if session, err := w.Connect(l); err == nil {
		session.Close()
		t.Errorf("%s gets in with the password of before", l.Username)
	}
}

// rotation runs the script.
type rotation struct {
	environment []string
	deploy      string // a command that hands a login over in the file next
	next        string
	secret      string
}

func newRotation(t *testing.T, url, key string) *rotation {
	t.Helper()
	dir := t.TempDir()
	s := &rotation{deploy: filepath.Join(dir, "deploy"), next: filepath.Join(dir, "next"), secret: key}
	s.environment = append(os.Environ(), "PATH="+filepath.Dir(stacktest.Build(t, "svc"))+":"+dir+":"+os.Getenv("PATH"),
		"SVC_BASE_URL="+url, "SVC_API_KEY="+key,
		"SVC_PROFILE=", "SVC_CA_FILE=",
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "NEXT="+s.next)
	const hands = "#!/bin/sh\nset -eu\ncat >\"$NEXT.new\"\nmv \"$NEXT.new\" \"$NEXT\"\nwhile [ -e \"$NEXT\" ]; do sleep 0.05; done\n"
	check.NoError(t, os.WriteFile(s.deploy, []byte(hands), 0o700))
	return s
}

// run runs the script, and returns what it says.
func (s *rotation) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, "sh", append([]string{"../docs/use/rotation.sh"}, args...)...)
	script.Env = s.environment
	script.WaitDelay = time.Second // What the script has started may hold its output open.
	out, err := script.CombinedOutput()
	if strings.Contains(string(out), s.secret) {
		t.Errorf("the script shows the key: %s", out)
	}
	return string(out), err
}

// during runs the script while an application works, and returns the users that the application was.
func (s *rotation) during(t *testing.T, w spec.World, first spec.Login, args ...string) []string {
	t.Helper()
	app := &application{world: w, next: s.next, passwords: []string{first.Password}}
	check.NoError(t, app.take(first))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { app.work(ctx) })
	out, err := s.run(t, append(args, s.deploy)...)
	stop()
	running.Wait()
	app.talk.Close()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	for _, p := range app.passwords {
		if strings.Contains(out, p) {
			t.Errorf("the script shows a password: %s", out)
		}
	}
	check.NoError(t, errors.Join(app.failed...))
	for i, n := range app.statements {
		if n == 0 {
			t.Errorf("the application did nothing as %s", app.users[i])
		}
	}
	t.Logf("%v: %v statements", args, app.statements)
	return app.users
}

// application writes through the pooler, on a connection that it replaces where it is handed another login.
type application struct {
	world spec.World
	next  string // the file of that login
	talk  spec.Talk

	passwords  []string
	users      []string
	statements []int // of each of the users
	failed     []error
}

func (a *application) work(ctx context.Context) {
	for ctx.Err() == nil {
		a.note(a.look())
		_, err := a.talk.Say("INSERT INTO visit VALUES (now()) RETURNING 'written'")
		a.note(err)
		a.statements[len(a.statements)-1]++
	}
}

// note keeps the first failures.
func (a *application) note(err error) {
	if err != nil && len(a.failed) < 5 {
		a.failed = append(a.failed, err)
	}
}

// look takes the login that was handed over, if there is one, and then says so by removing its file.
func (a *application) look() error {
	text, err := os.ReadFile(a.next)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var handed struct {
		Username string `json:"username"`
		wire.Credential
	}
	if err = errors.Join(err, json.Unmarshal(text, &handed)); err != nil {
		return err
	}
	a.passwords = append(a.passwords, handed.Password)
	return errors.Join(a.take(login(handed.Username, handed.Credential)), os.Remove(a.next))
}

// take opens a connection before it closes the one of before.
func (a *application) take(l spec.Login) error {
	opened, err := a.world.SQL.Talk(l)
	if err != nil {
		return err
	}
	if a.talk != nil {
		a.talk.Close()
	}
	a.talk, a.users, a.statements = opened, append(a.users, l.Username), append(a.statements, 0)
	return nil
}
