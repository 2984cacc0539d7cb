package dashboard_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
)

// What somebody has to be on the database of a page. A page about no database of a path is about the person's own account.
var needs = byName(map[account.Action]string{
	account.See: "database backups backup backup.download backup.certificate logins network extensions activity " +
		"role usage",
	account.ManageBackups: "backup.start backup.schedule backup.delete",
	account.Configure: "login.reveal login.rotate role.create role.optin role.rename role.prepare role.admit " +
		"role.reveal role.rotate role.revoke role.continue role.reconcile role.delete network.add " +
		"network.remove extension.change settings database.environment database.lifecycle slow",
	account.Own: "backup.restore backup.clone database.clone timeouts timeouts.set members member.add member.role " +
		"member.remove database.confirm invitation.resend invitation.revoke database.delete deleted.recover " +
		"deleted.backup",
})

func byName(pages map[account.Action]string) map[string]account.Action {
	of := map[string]account.Action{}
	for action, names := range pages {
		for name := range strings.FieldsSeq(names) {
			of[name] = action
		}
	}
	return of
}

const nowhere = "00000000-0000-4000-8000-000000000000"

// The standings that somebody has on a database of others.
var standings = []account.Standing{account.Admin, account.Developer, account.Viewer}

// shared is a world in which one database is shared with three people, and a stranger has one of their own.
type shared struct {
	*world
	owner, stranger *someone
	members         map[account.Standing]*someone
	shop            string // the path of the owner's database
	file, role      string // of that
}

func newShared(t *testing.T) *shared {
	t.Helper()
	w := newWorld(t)
	s := &shared{world: w, owner: w.person("Ada", account.Pro), stranger: w.person("Eve", account.Pro),
		members: map[account.Standing]*someone{}}
	s.stranger.makes("hers")
	s.shop = s.owner.makes("shop")
	s.owner.open(s.shop + "/backups").press("Start a backup")
	w.settled()
	s.owner.open(s.shop + "/backups")
	s.file = s.owner.firstLink("/backups/")
	s.owner.open(s.shop+"/logins").press("Make the login", "Name", "Reports", "Connections", "2")
	s.role = s.owner.at.Path
	for _, standing := range standings {
		m := w.person(string(standing), account.Free)
		s.owner.open(s.shop+"/members").press("Add the person", "E-mail address", m.email, "Role", string(standing))
		s.members[standing] = m
	}
	return s
}

// path is that of a page, about a database and what the owner has of it.
func (s *shared) path(p web.Page, db string) string {
	last := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
	return strings.NewReplacer(
		"{$}", "", "{id}", db, "{filename}", last(s.file), "{role}", last(s.role), "{login}", "runtime", "{key}", "nokey",
		"{entry}", nowhere, "{member}", nowhere, "{invitation}", nowhere, "{namespace}", nowhere, "{trust}", nowhere,
		"{delivery}", nowhere,
		"{token}", "none",
	).Replace(p.Path)
}

// asks sends a page's request, without what an action needs: so it changes nothing, but is allowed or not.
func (b *tab) asks(p web.Page, path string) *tab {
	b.Helper()
	follows := b.http.CheckRedirect
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { b.http.CheckRedirect = follows }()
	if p.Method == http.MethodPost {
		return b.post(path, url.Values{})
	}
	return b.open(path)
}

// Every page about a database is for whom its right is, and for nobody else; what is another's is answered as what nobody has,
// byte for byte.
func TestWhoMayDoWhat(t *testing.T) {
	s := newShared(t)
	shop := strings.TrimPrefix(s.shop, "/databases/")
	for _, p := range s.pages {
		if !strings.HasPrefix(p.Path, "/databases/{id}") {
			continue
		}
		action, known := needs[p.Name]
		if !known {
			t.Errorf("who may use the page %s? Write it down in this test", p.Name)
			continue
		}
		foreign, missing := s.path(p, shop), s.path(p, nowhere)
		theirs := s.stranger.asks(p, foreign)
		status, text := theirs.status, withoutIDs(theirs.text)
		if none := s.stranger.asks(p, missing); status != http.StatusNotFound || none.status != status ||
			withoutIDs(none.text) != text {
			t.Errorf("%s: a foreign database is answered %d, a missing one %d, or by other words", p.Name, status, none.status)
		}
		for standing, m := range s.members {
			m.asks(p, foreign)
			allowed := account.Permissions[action][standing]
			if !allowed && m.status != http.StatusForbidden {
				t.Errorf("%s for a %s: status %d, want 403", p.Name, standing, m.status)
			}
			if refused := m.status == http.StatusForbidden || m.status == http.StatusNotFound; allowed && refused &&
				notThere(p) != m.status {
				t.Errorf("%s for a %s: status %d", p.Name, standing, m.status)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if !slices.ContainsFunc(s.pages, func(p web.Page) bool { return p.Name == name }) {
			t.Errorf("there is no page %s", name)
		}
	}
	s.owner.open(s.shop).sees("active")
	s.owner.open(s.role).sees("ready")
	s.owner.open(s.file).sees("verified")
}

// notThere is the status of an action about something below the database that the test does not have; 0 for none.
func notThere(p web.Page) int {
	switch p.Name {
	case "network.remove", "member.role", "member.remove", "invitation.resend", "invitation.revoke":
		return http.StatusNotFound
	case "role.reconcile", "role.optin": // of databases with a single login alone
		return http.StatusForbidden
	default:
		return 0
	}
}

// What belongs to an account is reached by its person alone: pages about what is another's are as those about nothing.
func TestWhatIsAnotherAccounts(t *testing.T) {
	s := newShared(t)
	s.owner.open("/webhooks").press("Add the endpoint", "Address", "https://hooks.test/pg").follow("I have kept it")
	hook := s.owner.at.Path
	s.owner.open("/previews").press("Make the namespace", "Name", "web")
	space := s.owner.at.Path
	s.owner.open("/keys").press("Make the key", "Name", "deploy")
	key := s.owner.open("/keys").firstLink("/keys/")
	s.owner.open(s.shop)
	operation := s.owner.firstLink("/operations/")
	for _, p := range s.pages {
		for pattern, theirs := range map[string]string{
			"/webhooks/{id}": hook, "/previews/{namespace}": space, "/keys/{key}": key, "/operations/{id}": operation,
		} {
			rest, is := strings.CutPrefix(p.Path, pattern)
			if !is {
				continue
			}
			rest = strings.NewReplacer("{delivery}", nowhere, "{trust}", nowhere, "{key}", "nokey").Replace(rest)
			nobodys := strings.NewReplacer("{id}", nowhere, "{namespace}", nowhere, "{key}", "00000000").Replace(pattern)
			got := s.stranger.asks(p, theirs+rest)
			status, text := got.status, withoutIDs(got.text)
			none := s.stranger.asks(p, nobodys+rest)
			if status < 400 || status != none.status || text != withoutIDs(none.text) {
				t.Errorf("%s: what is another's is answered %d, what is nobody's %d, or by other words:\n%s\n%s",
					p.Name, status, none.status, text, withoutIDs(none.text))
			}
		}
	}
	s.owner.open(hook).sees("enabled")
	s.owner.open(key).sees("works")
	s.owner.open(space).sees("Make a key")
}

// Nothing is shown to, and nothing is done for, somebody who is not logged in, or whose form another site has sent.
func TestNobodyElseIsServed(t *testing.T) {
	s := newShared(t)
	shop := strings.TrimPrefix(s.shop, "/databases/")
	nobody := s.tab(t)
	for _, p := range s.pages {
		path := s.path(p, shop)
		if p.Who != web.Anybody {
			if nobody.asks(p, path); nobody.status != http.StatusSeeOther || nobody.text != "" {
				t.Errorf("%s, without a session: status %d, %q", p.Name, nobody.status, nobody.text)
			}
		}
		if p.Method != http.MethodPost {
			continue
		}
		if status := s.owner.fromElsewhere(path); status != http.StatusForbidden {
			t.Errorf("%s, sent by another site: status %d", p.Name, status)
		}
	}
	s.owner.open(s.shop).sees("active")
}

// fromElsewhere sends a form as a page of another site would have it sent.
func (b *tab) fromElsewhere(path string) int {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.at.ResolveReference(&url.URL{Path: path}).String(),
		strings.NewReader(""))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	request.Header.Set("Origin", "https://evil.example")
	response, err := b.http.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
