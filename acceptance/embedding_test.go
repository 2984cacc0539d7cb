package acceptance

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/adapters/passwords"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

func newControlPlane(ctx context.Context, metadataURL, keyringFile string) (*controlplane.ControlPlane, error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: metadataURL}) // implements ports.Store and ports.Admissions
	if err != nil {
		return nil, err
	}
	box, err := secretbox.Load(keyringFile) // implements ports.SecretBox and ports.KeyRing
	if err != nil {
		return nil, err
	}
	return controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Secrets: box, Ring: box,
		Fleet: agentclient.New(box, agentclient.Options{}), // reaches the agents of the registered servers
		Clock: system.NewClock(), Entropy: system.Entropy{}, Passwords: passwords.Hasher{},
	}, controlplane.Config{})
}

// TestEmbeddingPage holds the page to this file: what it shows is what is compiled and run here.
func TestEmbeddingPage(t *testing.T) {
	page, code := contents(t, "../docs/develop/embedding.md"), contents(t, "embedding_test.go")
	_, shown, _ := strings.Cut(page, "```go\n")
	shown, _, ended := strings.Cut(shown, "```")
	imports, function, split := strings.Cut(shown, ")\n\n")
	if !ended || !split || !strings.Contains(code, function) {
		t.Error("the function of docs/develop/embedding.md is not this file's newControlPlane")
	}
	for line := range strings.Lines(strings.TrimPrefix(imports, "import (\n")) {
		if !strings.Contains(code, line) {
			t.Errorf("this file does not import %s", line)
		}
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// embedder is a small service with pgherd in it, for one customer.
type embedder struct {
	*spec.Stage
	cp  *controlplane.ControlPlane
	key string
}

// TestEmbedding does what the page says, on the real stack: without an API host, and with the batch hosts of the stack stopped.
func TestEmbedding(t *testing.T) {
	s := &spec.Stage{TB: t, World: driver.Stack(t)}
	s.OK(s.Batch.Stop())
	defer func() { s.OK(s.Batch.Start()) }()
	metadataURL, keyringFile := driver.StackFiles()
	cp, err := newControlPlane(t.Context(), metadataURL, keyringFile)
	s.OK(err)
	notifier, err := postgres.NewNotifier(postgres.Config{URL: metadataURL})
	s.OK(err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { cp.Work.Run(ctx, notifier, work.Workers{All: 2}) })
	running.Go(func() { cp.Rounds.Run(ctx) })
	s.OK(cp.Keyring.Join(ctx, "embedder"))
	running.Go(func() { cp.Keyring.Run(ctx) })
	defer func() { cancel(); running.Wait(); s.OK(cp.Keyring.Leave(context.Background())); s.OK(notifier.Close()) }()

	email := s.Name("embedded") + "@example.org"
	e := &embedder{s, cp, newCustomer(s, cp, email)}
	made := e.creates()
	e.seesAsPerson(email, made.Record.ID)
	s.Connects(spec.Login{Database: made.Record.Name, Username: made.Username, Password: made.Password, From: spec.Home})
	reports := e.addsRole(made.Record.ID)
	s.Connects(spec.Login{Database: made.Record.Name, Username: reports.Username, Password: reports.Password, From: spec.Home})
	e.backsUp(made.Record.ID)
}

func newCustomer(s *spec.Stage, cp *controlplane.ControlPlane, email string) (key string) {
	s.Helper()
	a, _, err := cp.Operator.CreateAccount(s.Context(), operator.NewAccount{
		Email: email, Name: "Somebody", Plan: account.Pro,
	})
	s.OK(err)
	_, key, err = cp.Operator.CreateKey(s.Context(), keys.NewKey{
		AccountID: a.ID, Label: "a key", Scope: account.FullAccount,
	})
	s.OK(err)
	return key
}

func (e *embedder) caller(c ratelimit.Class) access.Caller {
	e.Helper()
	admitted, err := e.cp.Access.Admit(e.Context(), access.Attempt{
		Key: e.key, Class: c, Client: netip.MustParseAddr("192.0.2.1"), RequestID: e.Name("request"),
	})
	e.OK(err)
	return admitted.Caller
}

func (e *embedder) reach(
	c ratelimit.Class, of id.DatabaseID, a account.Action, gates ...rollout.Gate,
) access.Reached {
	e.Helper()
	reached, err := e.cp.Access.Reach(e.Context(), e.caller(c), of, a, gates...)
	e.OK(err)
	return reached
}

func (e *embedder) creates() databases.Created {
	e.Helper()
	asked := databases.CreateRequest{Name: e.Name("embedded"), DisplayName: "Embedded", RoleModel: new(database.RoleModel("many"))}
	_, err := e.cp.Databases.Create(e.Context(), e.caller(ratelimit.Create), asked)
	e.That(fault.Has(err, fault.ValidationError) && strings.Contains(err.Error(), "roleModel"), "a wrong role model: %v", err)
	asked.RoleModel = new(database.Managed)
	made, err := e.cp.Databases.Create(e.Context(), e.caller(ratelimit.Create), asked)
	e.OK(err)
	return made
}

// seesAsPerson has the customer choose a password, log in, and see the database.
func (e *embedder) seesAsPerson(email string, of id.DatabaseID) {
	e.Helper()
	from := people.Client{Address: netip.MustParseAddr("192.0.2.1"), Agent: "a browser"}
	link, err := e.cp.Operator.LinkUser(e.Context(), email)
	e.OK(err)
	const password = "correct horse battery"
	from.Device, err = e.cp.People.Reset(e.Context(), link.Token, password, from)
	e.OK(err)
	_, err = e.cp.People.LogIn(e.Context(), people.Credentials{Email: email, Password: "another one"}, from)
	e.That(fault.Has(err, fault.Unauthorized), "a wrong password: %v", err)
	in, err := e.cp.People.LogIn(e.Context(), people.Credentials{Email: email, Password: password}, from)
	e.OK(err)
	admitted, err := e.cp.Access.AdmitPerson(e.Context(), access.Visit{Token: in.Token, Class: ratelimit.Read, Client: from.Address})
	e.OK(err)
	list, _, err := e.cp.Databases.List(e.Context(), admitted.Caller, ports.Page{})
	e.OK(err)
	e.That(len(list) == 1 && list[0].ID == of, "the person sees %v", list)
	e.OK(e.cp.People.LogOut(e.Context(), in.Token))
	_, err = e.cp.Access.Reach(e.Context(), admitted.Caller, of, account.See)
	e.That(fault.Has(err, fault.DatabaseNotFound), "after the log-out: %v", err)
}

func (e *embedder) addsRole(of id.DatabaseID) roles.Revealed {
	e.Helper()
	reach := func(c ratelimit.Class) access.Reached {
		return e.reach(c, of, account.Configure, rollout.AdditionalRoles)
	}
	made, err := e.cp.Roles.Create(e.Context(), reach(ratelimit.Create), role.Request{
		DisplayName: "Reports", AccessProfile: role.ReadOnly, ConnectionLimit: 2, Key: "reports",
	})
	e.OK(err)
	revealed, err := e.cp.Roles.Reveal(e.Context(), reach(ratelimit.Reveal), made.ID)
	e.OK(err)
	return revealed
}

func (e *embedder) backsUp(of id.DatabaseID) {
	e.Helper()
	started, err := e.cp.Backups.Start(e.Context(), e.reach(ratelimit.Create, of, account.ManageBackups))
	e.OK(err)
	e.Eventually("the backup has succeeded", func() bool {
		found, err := e.cp.Operations.Reach(e.Context(), e.caller(ratelimit.Read), started.ID, account.See)
		e.OK(err)
		return found.Operation().Status == operation.Succeeded
	})
}
