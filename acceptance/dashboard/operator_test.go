package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/ports"
)

// asked is what a page has a device sign.
type asked struct {
	Options json.RawMessage
	Token   string
}

func (b *tab) begins(path string) (a asked) {
	b.Helper()
	if err := json.Unmarshal([]byte(b.post(path, nil).text), &a); err != nil {
		b.Fatal(err, b.text)
	}
	return a
}

// proves has a person prove who they are by the passkey of a device.
func (p *someone) proves(by *fakepasskeys.Device) {
	p.Helper()
	a := p.begins("/prove/passkey/begin")
	p.post("/prove/passkey", url.Values{"challenge": {a.Token}, "response": {string(by.Signs(a.Options))}}).sees("Databases")
}

// operator makes somebody who is named as an operator and has proved it by a passkey.
func (w *world) operator(name string) (*someone, *fakepasskeys.Device) {
	w.Helper()
	p, device := w.person(name, account.Pro), fakepasskeys.NewDevice(name)
	w.ok(w.cp.Operator.AddOperator(context.Background(), p.email))
	a := p.begins("/security/passkeys/begin")
	p.post("/security/passkeys", url.Values{
		"challenge": {a.Token}, "response": {string(device.Registers(a.Options))}, "name": {"phone"},
	}).sees("The passkey was added.")
	p.proves(device)
	return p, device
}

const why = "a customer has asked"

// The console is there for who is named, has proved it by a passkey, and comes from its networks; for nobody else, whatever they
// ask for.
func TestWhoOperates(t *testing.T) {
	s := newShared(t)
	grace, phone := s.operator("Grace")
	shop := strings.TrimPrefix(s.shop, "/databases/")
	missing := withoutIDs(s.stranger.open("/nothing").text)
	for _, p := range s.pages {
		if p.Who != web.Operator {
			continue
		}
		path := s.path(p, shop)
		for who, one := range map[string]*someone{"a stranger": s.stranger, "an owner": s.owner, "an admin": s.members[account.Admin]} {
			if one.asks(p, path); one.status != http.StatusNotFound || withoutIDs(one.text) != missing {
				t.Errorf("%s for %s: status %d, or not as a page that is not there", p.Name, who, one.status)
			}
			for _, method := range []string{http.MethodGet, http.MethodPut} {
				request := must(http.NewRequestWithContext(t.Context(), method, s.origin.String()+path, nil))(t)
				if one.send(request); one.at.Path != path || one.status != http.StatusNotFound || withoutIDs(one.text) != missing {
					t.Errorf("%s %s for %s: status %d, or not as a page that is not there", method, path, who, one.status)
				}
			}
		}
		if p.Method != http.MethodPost {
			continue
		}
		if grace.asks(p, path); grace.status < 400 || grace.status >= 500 {
			t.Errorf("%s without a reason: status %d", p.Name, grace.status)
		}
	}
	s.owner.open("/").lacks("Operator")
	grace.open("/").follow("Operator").sees("Fleet", "main")

	s.console.Networks = must(network.ParseList("networks", []string{"192.0.2.0/24"}))(t)
	grace.open("/").lacks("Operator")
	grace.open("/operator").refused(http.StatusNotFound)
	grace.post("/operator/installation/maintenance", url.Values{"what": {"give"}, "reason": {why}}).refused(http.StatusNotFound)
	s.console.Networks = ""

	other := &someone{tab: s.tab(t), email: grace.email}
	other.logIn()
	other.open("/operator").sees("Prove that it is you", "needs a passkey").lacks("Password")
	other.post("/operator/installation/maintenance", url.Values{"what": {"give"}, "reason": {why}}).sees("Prove that it is you")
	other.open("/").follow("Operator")
	other.proves(phone)
	other.open("/operator").sees("Fleet")

	bob := s.person("Bob", account.Pro)
	s.ok(s.cp.Operator.AddOperator(context.Background(), bob.email))
	bob.open("/operator").refused(http.StatusForbidden, "needs a passkey: add one under Security")

	s.clock.Advance(person.Recent + time.Second)
	grace.open("/operator/installation").press("Begin maintenance", "Why", why).sees("Prove that it is you")
	s.ok(s.cp.Operator.RemoveOperator(context.Background(), grace.email))
	grace.open("/operator").refused(http.StatusNotFound)
}

// Who has the password of an operator, or a link in its place, neither gets another passkey nor rids the person of theirs.
func TestPasskeysOfOperators(t *testing.T) {
	w := newWorld(t)
	grace, phone := w.operator("Grace")
	other := &someone{tab: w.tab(t), email: grace.email}
	other.logIn()
	other.post("/security/passkeys/begin", nil).has(`{"to": "/prove?next=%2Fsecurity"}`)
	other.open("/security").press("Remove").sees("Prove that it is you", "An operator needs a passkey").lacks("Password")
	a := grace.begins("/security/passkeys/begin")
	grace.open("/prove?next=/security/factor").press("Continue", "Password", password)
	grace.post("/security/passkeys", url.Values{
		"challenge": {a.Token}, "response": {string(fakepasskeys.NewDevice("laptop").Registers(a.Options))}, "name": {"laptop"},
	}).sees("Prove that it is you")
	other.proves(phone)
	other.open("/security").sees("phone").lacks("laptop").press("Remove").sees("The passkey was removed.")
}

func TestTheConsole(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	shop := ada.makes("shop")
	grace, _ := w.operator("Grace")

	// The fleet.
	grace.open("/operator").sees("main", "db.test").follow("main").sees("Databases", "1 of 1000")
	server := grace.at.Path
	grace.press("Change the server", "Most databases", "many", "Why", why).refused(400)
	grace.open(server).press("Change the server", "Most databases", "500").refused(400)
	grace.press("Change the server", "Most databases", "500", "New databases", "false", "Why", why).
		sees("The server was changed.", "1 of 500")
	grace.press("Change the server", "New databases", "true", "Why", why)
	grace.press("Remove the server", "Type main to confirm", "main", "Why", why).refused(400, "1 database")
	grace.open(server).follow("Check it now").sees("What a check of the server finds", "agent")
	grace.open("/operator").follow("Check all servers now").sees("Check of all servers")

	// Accounts.
	grace.open("/operator/accounts?q=ADA").sees("ada@example.org").lacks("grace@example.org,").follow("ada@example.org")
	owner := grace.at.Path
	for _, query := range []string{
		"accounts?q=a%00", "accounts?q=%ff", "accounts?plan=a%00", "databases?q=a%00", "databases?status=a%00",
	} {
		grace.open("/operator/"+query).refused(400, "VALIDATION_ERROR")
	}
	grace.open(owner)
	grace.sees("shop", "1 of 10").press("Change the account", "Most databases", "lots", "Why", why).refused(400)
	grace.press("Change the account", "Plan", "business", "Most databases", "3", "Size of a database", "5GiB", "Why", why).
		sees("The account was changed.", "business", "1 of 3", "5.0 GiB")
	grace.follow("Its activity").sees("account changed", "operator grace@example.org", "reason "+why)
	grace.open(owner).press("Suspend the account", "Type ada@example.org to confirm", "ada", "Why", why).refused(400)
	grace.press("Suspend the account", "Type ada@example.org to confirm", "ada@example.org", "Why", why).sees("suspended", why)
	ada.open(shop).refused(http.StatusForbidden, why)
	grace.open("/operator/accounts").sees("suspended business").follow("ada@example.org").
		press("Resume the account", "Why", "paid").sees("The account is served again.")
	ada.open(shop).sees("active")
	link := grace.open("/operator/accounts").press("Make the link", "E-mail address", "new@example.org", "Name", "New", "Why", why).
		sees("shown once").code("Link")
	grace.lacks("already").open("/operator/accounts").
		press("Make the link", "E-mail address", ada.email, "Name", "New", "Plan", "free", "Why", why).
		sees("The address is a user's already: name and plan stay as they were.")
	fresh := &someone{tab: w.tab(t), email: "new@example.org"}
	fresh.open(link).press("Choose the password", "New password", password)
	fresh.logIn()

	// Databases.
	grace.open("/operator/databases?q=shop").sees("shop", "ada@example.org").follow("shop").sees("active", "Enrolments")
	record := grace.at.Path
	grace.press("Change the enrolment", "Route", "clone", "The database", "take", "Why", why).sees("The enrolments were changed.")
	ada.open(shop + "/settings").lacks("Clone")
	grace.open(record).press("Change the enrolment", "Route", "all", "Why", why)
	ada.open(shop + "/settings").sees("Clone")
	grace.open(record).follow("Its activity").sees("database unenrolled", why)

	// The installation.
	grace.open("/operator/installation").sees("grace@example.org").
		press("Change the feature", "Feature", "clone", "It is", "take", "Why", why).sees("The feature was changed.")
	ada.open(shop + "/settings").lacks("Clone")
	grace.press("Change the feature", "Feature", "clone", "It is", "give", "Why", why)
	grace.press("Begin maintenance", "Why", why).sees("Maintenance was changed.", "on")
	ada.open("/").refused(http.StatusServiceUnavailable)
	grace.open("/").refused(http.StatusServiceUnavailable)
	grace.open("/operator/installation").press("End maintenance", "Why", why)
	ada.open("/").sees("shop")
	grace.open("/operator/audit").sees("maintenance begun", "maintenance ended", "feature disabled", why)

	// Doctor and key ring.
	grace.open("/operator/doctor").follow("Examine main").sees("Nothing differs.")
	grace.open("/operator/keyring").sees("Keys", "Hosts")
}

// The page of an account with thousands of databases is no longer than that of one with some.
func TestAnAccountWithManyDatabases(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("Ada", account.Pro), w.person("Bob", account.Pro)
	shop := strings.TrimPrefix(ada.makes("shop"), "/databases/")
	w.ok(w.store.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
		made, err := tx.Databases().Get(ctx, id.DatabaseID(shop))
		for i := range 60 {
			made.ID, made.DisplayName = id.DatabaseID(fmt.Sprintf("f0000000-0000-4000-8000-%012d", i)), fmt.Sprintf("many %02d", i)
			made.Name = fmt.Sprintf("many-%02d", i)
			err = errors.Join(err, tx.Databases().Add(ctx, made))
		}
		return err
	}))
	bob.makes("theirs")
	grace, _ := w.operator("Grace")
	grace.open("/operator/accounts/"+string(ada.of.ID)).sees("shop", "many 10").lacks("many 59").
		follow("Next page").sees("many 59").lacks("many 10", "theirs").follow("First page").sees("many 10").lacks("theirs")
}

func TestOperationsOfOperators(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	shop := ada.makes("shop")
	grace, _ := w.operator("Grace")
	fleet := must(w.cp.Operator.Servers(context.Background()))(t)
	agent := w.fleet.Server(fleet[0].ID)
	grace.open("/operator/operations").sees("Nothing is under way.")
	stuck := func() {
		t.Helper()
		agent.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
			if c.Step != "" { // what begins a backup is asked first
				f.Before = ports.ErrAgentUnreachable
			}
			return f
		})
		ada.open(shop + "/backups").press("Start a backup")
		w.until(func() bool {
			return strings.Contains(grace.open("/operator/operations").text, "waits for its next attempt")
		})
		grace.follow("backup").sees("waits for its next attempt", "Attempts")
	}
	stuck()
	one := grace.at.Path
	agent.SetUnreachable(true)
	grace.press("End it", "Type backup to confirm", "backup", "Why", why).refused(500, "AGENT_ERROR")
	agent.SetUnreachable(false)
	agent.OnCall(nil)
	grace.open(one)
	grace.press("Try it now", "Why", why).sees("The operation is tried again now.")
	w.settled()
	grace.open(one).sees("succeeded").lacks("Try it now")
	stuck()
	agent.OnCall(nil)
	grace.press("End it", "Type backup to confirm", "nothing", "Why", why).refused(400)
	grace.press("End it", "Type backup to confirm", "backup", "Why", why).sees("failed", why)
	ada.open(shop).sees("failed", why)
	stuck()
	one = grace.at.Path
	grace.press("Ask it to end", "Why", why).sees("The operation is asked to end.")
	agent.OnCall(nil)
	w.settled()
	grace.open(one).sees("canceled")
	grace.open("/operator/operations?state=failed").sees("backup", "failed")
	grace.open("/operator/audit?database="+strings.TrimPrefix(shop, "/databases/")).sees("operation end ordered",
		"operation retried", "operation cancel ordered", why)
}
