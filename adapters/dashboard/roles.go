package dashboard

import (
	"fmt"
	"strconv"

	"golang.org/x/text/unicode/norm"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
)

// rolePages are the additional logins of a database, of either model.
func (s *site) rolePages() []web.Page {
	const (
		list = "/databases/{id}/roles"
		one  = list + "/{role}"
	)
	post := func(name, path string, do func(*web.Request) (web.Answer, error), does ...string) web.Page {
		return web.Post(name, one+path, one, do, does...)
	}
	return []web.Page{
		web.Post("role.create", list, "/databases/{id}"+loginsTab, s.createRole, "createRole", "createLegacyRole").Of(ratelimit.Create),
		web.Post("role.optin", list+"-opt-in", "/databases/{id}"+loginsTab, s.optIn, "optInLegacyRoles").Of(ratelimit.Create).
			Says("The database takes additional logins."),
		web.Get("role", one, s.showRole, "getRoleChange", "getLegacyRoleChange"),
		post("role.rename", "/rename", s.renameRole, "renameRole").Says("The login has another name."),
		post("role.prepare", "/prepare", s.prepareRole, "prepareRole", "prepareLegacyRole").Says("The login exists on the server."),
		post("role.admit", "/admit", s.admitRole, "admitRole", "admitLegacyRole").Says("The login can log in."),
		post("role.reveal", "/reveal", s.revealRole, "revealRole", "revealLegacyRole").Of(ratelimit.Reveal),
		post("role.rotate", "/rotate", s.changeRole(role.Rotation), "changeRole",
			"changeLegacyRole").Says("The password is rotated, or about to be."),
		post("role.revoke", "/revoke", s.changeRole(role.Revocation), "changeRole",
			"changeLegacyRole").Says("The login is shut out, or about to be."),
		post("role.continue", "/continue", s.continueRole, "continueRoleChange",
			"continueLegacyRoleChange").Says("The change goes on."),
		post("role.reconcile", "/reconcile", s.reconcileRole, "reconcileLegacyRole").Says("The login was looked at."),
		post("role.delete", "/delete", s.deleteRole, "deleteRole", "removeRole", "removeLegacyRole").
			Says("The login is removed, or about to be."),
	}
}

// keeper keeps the additional logins of databases of one model.
type keeper struct {
	*roles.Roles
	gate   rollout.Gate
	legacy bool
}

// keeper is that of a database's model.
func (s *site) keeper(m database.RoleModel) keeper {
	if m == database.SingleLogin {
		return keeper{s.use.LegacyRoles.Roles, rollout.LegacyRoles, true}
	}
	return keeper{s.use.Roles, rollout.AdditionalRoles, false}
}

// reachRoles is reach for the additional logins. A database is reached twice: its model says which gate is before them.
func (s *site) reachRoles(r *web.Request, a account.Action) (d access.Reached, k keeper, err error) {
	if d, err = s.reach(r, a); err != nil {
		return d, k, err
	}
	k = s.keeper(d.Record().RoleModel)
	d, err = s.reach(r, a, k.gate)
	return d, k, err
}

// roleSections are the additional logins, and how to make one; none where they are not open.
func (s *site) roleSections(r *web.Request, d access.Reached) ([]*web.Section, error) {
	reached, k, err := s.reachRoles(r, account.See)
	if err != nil {
		return nil, nil //nolint:nilerr // the operator has not opened them, or the database is gone, which the page itself finds
	}
	list, err := k.List(r.Context(), reached, true)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Additional logins, each with its own password",
		Columns: []web.Column{
			{Title: "Name", Sort: "name"}, {Title: "Status", Sort: "status"}, {Title: "Access", Sort: "access"},
			{Title: "Connections", Number: true, Sort: "connections"}, {Title: "Password ends"},
		},
		Empty: &web.Empty{Text: "No additional login yet.", Command: "svc roles create " + d.Record().Name +
			" --name Reports --access read_only"},
	}
	for _, l := range list {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: l.DisplayName, Href: under(d.Record().ID, "roles", string(l.ID)), Sub: l.Username}, {Mark: roleMark(l.Status)},
			web.Words(plain(l.AccessProfile)), {Text: strconv.Itoa(l.ConnectionLimit), Key: int64(l.ConnectionLimit)},
			web.Time(l.CredentialExpiresAt),
		}})
	}
	section := &web.Section{ID: "roles", Title: "Additional logins", Table: t.Arrange(r)}
	if !may(d, account.Configure) {
		return []*web.Section{section}, nil
	}
	if k.legacy && d.Record().OverlayStatus != database.OverlayActive {
		section.Forms = []*web.Form{{
			Name: "role.optin", Action: under(d.Record().ID,
				"roles-opt-in"), Submit: "Prepare the database", Fold: "Let the database have additional logins",
			Intro: "The service makes group roles in the database, once. Nothing else changes.",
		}}
		return []*web.Section{section}, nil
	}
	form := &web.Form{
		Name: "role.create", Action: under(d.Record().ID, "roles"), Submit: "Make the login", Fold: "New login",
		Fields: []*web.Field{
			{Name: "displayName", Label: "Name", Max: 64, Placeholder: "Reports"},
			{Name: "accessProfile", Label: "Access", Type: "select", Options: options(role.ReadOnly.Values(), "")},
			{Name: "connectionLimit", Label: "Connections", Type: "number", Value: "5",
				Help: "Of the database's own; how many at a time."},
		},
	}
	section.Forms = []*web.Form{form.Once(s.once())}
	return []*web.Section{section}, nil
}

// label composes a name, so that the two encodings of an accented letter make one: names must be unique, and core does without
// Unicode's tables for that.
func label(text string) string { return norm.NFC.String(text) }

func (s *site) createRole(r *web.Request) (web.Answer, error) {
	d, k, err := s.reachRoles(r, account.Configure)
	if err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi(r.Field("connectionLimit"))
	if err != nil {
		return nil, fault.Invalid("connectionLimit", "is a number")
	}
	made, err := k.Create(r.Context(), d, role.Request{
		DisplayName: label(r.Field("displayName")), AccessProfile: role.AccessProfile(r.Field("accessProfile")),
		ConnectionLimit: limit, Key: idempotency.Key(r.Once()),
	})
	return web.Redirect{To: under(d.Record().ID, "roles", string(made.ID))}, err
}

func (s *site) optIn(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure, rollout.LegacyRoles)
	if err != nil {
		return nil, err
	}
	_, err = s.use.LegacyRoles.OptIn(r.Context(), d)
	return to(r, loginsTab), err
}

// roleOf finds the login of a page.
func (s *site) roleOf(r *web.Request, a account.Action) (d access.Reached, k keeper, found roles.State, err error) {
	if d, k, err = s.reachRoles(r, a); err != nil {
		return d, k, found, err
	}
	list, err := k.List(r.Context(), d, true)
	if err != nil {
		return d, k, found, err
	}
	for _, l := range list {
		if l.ID == id.RoleID(r.Param("role")) {
			return d, k, l, nil
		}
	}
	return d, k, found, role.ErrNotFound()
}

func (s *site) showRole(r *web.Request) (web.Answer, error) {
	d, k, l, err := s.roleOf(r, account.See)
	if err != nil {
		return nil, err
	}
	v := within(d, loginsTab, l.DisplayName)
	v.Marks = []*web.Mark{roleMark(l.Status)}
	section := &web.Section{ID: "role", Facts: []web.Fact{
		{Name: "Login", Cell: web.MonoText(l.Username)},
		{Name: "Status", Cell: web.Cell{Mark: roleMark(l.Status)}},
		{Name: "Access", Cell: web.Words(plain(l.AccessProfile))},
		{Name: "Connections", Cell: web.Words(strconv.Itoa(l.ConnectionLimit))},
		{Name: "Password", Cell: web.Words(fmt.Sprintf("generation %d", l.CredentialGeneration))},
		{Name: "Password ends", Cell: web.Time(l.CredentialExpiresAt)},
		{Name: "Made", Cell: web.Time(&l.CreatedAt)},
	}}
	if l.Status == role.SQLReady && k.legacy {
		section.Note = "The owner of the database has to let the login connect:"
		section.Codes = []web.Code{{Label: "To run as the owner", Text: l.GrantConnect(d.Record().Name)}}
	}
	if r.Failure != nil {
		section.Codes = append(section.Codes, inTheWay(r.Failure.Err)...)
	}
	if may(d, account.Configure) {
		section.Forms = append(section.Forms, s.roleForms(k, d, l)...)
	}
	v.Sections = []*web.Section{section}
	return v, nil
}

// inTheWay shows what else a refusal says.
func inTheWay(e *fault.Error) (list []web.Code) {
	if grant, is := e.Extra["grantSql"].(string); is {
		list = append(list, web.Code{Label: "To run as the owner", Text: grant})
	}
	dependencies, _ := e.Extra["dependencies"].([]role.Dependency)
	text := ""
	for _, d := range dependencies {
		text += fmt.Sprintf("%s: %s %s\n", plain(d.Kind), d.ObjectType, d.Identity)
	}
	if text != "" {
		list = append(list, web.Code{Label: "In the way", Text: text})
	}
	return list
}

func (s *site) roleForms(k keeper, d access.Reached, l roles.State) (list []*web.Form) {
	at := under(d.Record().ID, "roles", string(l.ID))
	add := func(name, path, submit string) { list = append(list, button(name, at+path, submit)) }
	switch l.Status { //nolint:exhaustive // a removed one is not listed
	case role.Reserved:
		add("role.prepare", "/prepare", "Make it on the server")
	case role.SQLReady:
		add("role.admit", "/admit", "Let it log in")
	case role.Ready:
		add("role.reveal", "/reveal", "Show the password")
		for _, f := range []*web.Form{
			{Name: "role.rotate", Action: at + "/rotate", Submit: "Rotate the password", Fold: "Rotate the password",
				Intro: endsConnections},
			{Name: "role.revoke", Action: at + "/revoke", Submit: "Shut the login out", Fold: "Shut the login out", Danger: true,
				Intro: endsConnections},
		} {
			list = append(list, f.Once(s.once()))
		}
	case role.Updating:
		list = append(list, button("role.continue", at+"/continue", "Go on with the change",
			web.Pair{Name: "change", Value: string(l.ChangeID)}))
	}
	if k.legacy {
		add("role.reconcile", "/reconcile", "Look at it on the server")
	}
	if l.Status == role.Ready || l.Status == role.Revoked {
		list = append(list, &web.Form{
			Name: "role.rename", Action: at + "/rename", Submit: "Rename", Fold: "Rename",
			Fields: []*web.Field{{Name: "displayName", Label: "Name", Value: l.DisplayName, Max: 64}},
		})
	}
	return append(list, &web.Form{
		Name: "role.delete", Action: at + "/delete", Submit: "Remove the login", Fold: "Remove the login", Danger: true,
		Intro: "It is shut out first. What it owns in the database has to go before.", Fields: []*web.Field{web.Typed(l.DisplayName)},
	})
}

const endsConnections = "Every connection of the login ends."

func (s *site) renameRole(r *web.Request) (web.Answer, error) {
	d, k, err := s.reachRoles(r, account.Configure)
	if err != nil {
		return nil, err
	}
	_, err = k.Rename(r.Context(), d, id.RoleID(r.Param("role")), label(r.Field("displayName")))
	return toRole(r), err
}

func toRole(r *web.Request) web.Answer { return to(r, "/roles/"+r.Param("role")) }

func (s *site) prepareRole(r *web.Request) (web.Answer, error) {
	d, k, err := s.reachRoles(r, account.Configure)
	if err != nil {
		return nil, err
	}
	_, err = k.Prepare(r.Context(), d, id.RoleID(r.Param("role")))
	return toRole(r), err
}

func (s *site) admitRole(r *web.Request) (web.Answer, error) {
	d, k, err := s.reachRoles(r, account.Configure)
	if err != nil {
		return nil, err
	}
	_, err = k.Admit(r.Context(), d, id.RoleID(r.Param("role")))
	return toRole(r), err
}

func (s *site) revealRole(r *web.Request) (web.Answer, error) {
	d, k, err := s.reachRoles(r, account.Configure)
	if err != nil {
		return nil, err
	}
	shown, err := k.Reveal(r.Context(), d, id.RoleID(r.Param("role")))
	if err != nil {
		return nil, err
	}
	return passwordView(d, "Password of "+shown.DisplayName, shown.Username, shown.Password), nil
}

func (s *site) changeRole(kind role.Kind) func(*web.Request) (web.Answer, error) {
	return func(r *web.Request) (web.Answer, error) {
		d, k, err := s.reachRoles(r, account.Configure)
		if err != nil {
			return nil, err
		}
		_, err = k.Change(r.Context(), d, id.RoleID(r.Param("role")), kind, idempotency.Key(r.Once()))
		return toRole(r), err
	}
}

func (s *site) continueRole(r *web.Request) (web.Answer, error) {
	d, k, err := s.reachRoles(r, account.Configure)
	if err != nil {
		return nil, err
	}
	change, err := identifier[id.OperationID](r, "change")
	if err != nil {
		return nil, err
	}
	_, err = k.ReplayChange(r.Context(), d, id.RoleID(r.Param("role")), change)
	return toRole(r), err
}

func (s *site) reconcileRole(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure, rollout.LegacyRoles)
	if err != nil {
		return nil, err
	}
	_, err = s.use.LegacyRoles.Reconcile(r.Context(), d, id.RoleID(r.Param("role")))
	return toRole(r), err
}

// deleteRole shuts a login out and removes it, as far as it comes; the same again goes on.
func (s *site) deleteRole(r *web.Request) (web.Answer, error) {
	d, k, l, err := s.roleOf(r, account.Configure)
	if err == nil {
		err = r.Confirm(l.DisplayName)
	}
	if err != nil {
		return nil, err
	}
	remove := k.Delete
	if k.legacy {
		remove = s.use.LegacyRoles.Delete
	}
	done, err := remove(r.Context(), d, l.ID)
	if err == nil && !done.Done {
		return toRole(r), nil
	}
	return to(r, loginsTab), err
}
