package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/ports"
)

const (
	ownersPath = consolePath + accountTab
	ownerPath  = ownersPath + "/{id}"
)

func (s *site) accountListPages() []web.Page {
	return []web.Page{
		web.Get("operator.accounts", ownersPath, s.look(s.showAccounts)),
		web.Post("operator.account.invite", ownersPath, ownersPath, s.inviteUser),
		web.Get("operator.account", ownerPath, s.look(s.showOwner)),
		web.Post("operator.account.set", ownerPath+"/set", ownerPath, s.setAccount).Says("The account was changed."),
		web.Post("operator.account.suspend", ownerPath+"/suspend", ownerPath, s.suspend).Says("The account is suspended."),
		web.Post("operator.account.resume", ownerPath+"/resume", ownerPath, s.resume).Says("The account is served again."),
	}
}

func pathOfOwner(of id.AccountID) string { return ownersPath + "/" + string(of) }

func (s *site) showAccounts(r *web.Request, o *operator.Operator) (web.Answer, error) {
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	of := ports.AccountFilter{}
	if of.Email, err = fault.Label("q", r.Query("q"), 0, mostSearched); err != nil {
		return nil, err
	}
	if of.Plan, err = bounded(r, "plan", account.Plans); err != nil {
		return nil, err
	}
	list, err := o.Accounts(r.Context(), of, page.Beyond())
	if err != nil {
		return nil, err
	}
	list, next := ports.Cut(list, page, func(a ports.AccountEntry) ports.Position {
		return ports.Position{At: a.CreatedAt, ID: string(a.ID)}
	})
	t := &web.Table{
		Caption: "Accounts, the oldest first",
		Columns: []web.Column{
			{Title: "Owner"}, {Title: "Plan"}, {Title: "Databases"}, {Title: "Size", Number: true}, {Title: "Backups", Number: true},
			{Title: "Keys", Number: true}, {Title: "Since"},
		},
		Empty:    &web.Empty{Text: "No account yet. Invite somebody here, or:", Command: "pgherd admin user invite --email … --name …"},
		Filtered: of.Email != "" || of.Plan != "",
		Filter: &web.Form{Action: ownersPath, Get: true, Submit: "Filter", Fields: []*web.Field{
			{Name: "q", Label: "E-mail address", Type: "search", Value: of.Email, Optional: true},
			{Name: "plan", Label: "Plan", Type: "select", Value: string(of.Plan), Optional: true,
				Options: options(account.Plans, "all")},
		}},
	}
	for _, a := range list {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: a.Email, Href: pathOfOwner(a.ID), Sub: a.Name}, {Text: string(a.Plan), Mark: suspensionMark(a.Suspension)},
			partCell(a.Databases, a.Quotas().Databases), web.Words(web.Bytes(a.Bytes)), web.Words(web.Bytes(a.InBackups)),
			web.Words(strconv.Itoa(a.Keys)), web.Time(&a.CreatedAt),
		}})
	}
	at := ownersPath
	if t.Filtered {
		at += "?" + url.Values{"q": {of.Email}, "plan": {string(of.Plan)}}.Encode()
	}
	turned(t, at, page, next)
	v := console(accountTab, "Accounts")
	v.Sections = []*web.Section{{ID: "accounts", Table: t, Forms: []*web.Form{{
		Name: "operator.account.invite", Action: ownersPath, Submit: "Make the link", Fold: "Invite somebody",
		Intro: "Makes a user with an account, where the address is nobody's, and a link with which the user chooses a password.",
		Fields: []*web.Field{
			{Name: "email", Label: "E-mail address", Type: "email", Max: 254}, {Name: "name", Label: "Name", Max: 100},
			{Name: "plan", Label: "Plan", Type: "select", Value: string(account.Free), Options: options(account.Plans, "")},
			{Name: "mail", Label: "Send the link by mail", Type: "check", Value: yes, Optional: true}, reasonField(),
		},
	}}}}
	return v, nil
}

func (s *site) inviteUser(r *web.Request) (web.Answer, error) {
	n := operator.NewAccount{Email: r.Field("email"), Name: r.Field("name"), Plan: account.Plan(r.Field("plan"))}
	if _, err := account.ParsePlan(string(n.Plan)); err != nil {
		return nil, err
	}
	var made operator.Invited
	err := s.order(r, func(ctx context.Context, o *operator.Operator, _ operation.Order) (err error) {
		made, err = o.InviteUser(ctx, n, r.Field("mail") == yes)
		return err
	})
	if err != nil {
		return nil, err
	}
	note := "It works once, until " + web.Exact(made.Link.EndsAt) + ". Whoever has it chooses the password."
	if made.Link.Mailed {
		note += " It is on its way by mail, too."
	}
	if !made.Made {
		note = "The address is a user's already: name and plan stay as they were. " + note
	}
	v := below(accountTab, "Accounts", "A link for "+made.User.Email)
	v.Sections = []*web.Section{{
		Note: note, Codes: []web.Code{{Label: "Link", Text: s.Pages.Reset.With(made.Link.Token), Secret: true}},
		Links: []web.Link{{Text: "To the account", Href: pathOfOwner(made.Account.ID)}},
	}}
	return v, nil
}

func (s *site) showOwner(r *web.Request, o *operator.Operator) (web.Answer, error) {
	first := ports.Page{Limit: pageLength}
	a, err := o.AccountDetails(r.Context(), id.AccountID(r.Param("id")), first.Beyond())
	if err != nil {
		return nil, found(err)
	}
	q := a.Quotas()
	owned, next := ports.Cut(a.Owned, first, positionOf)
	t := &web.Table{
		Caption: "Databases of the account, the oldest first",
		Columns: []web.Column{
			{Title: "Name"}, {Title: "Status"}, {Title: "Size"}, {Title: "Backups"}, {Title: "Server"}, {Title: "Created"},
		},
		Empty: &web.Empty{Text: "The account has no database."},
	}
	turned(t, web.WithQuery(recordsPath, "account", string(a.ID)), first, next)
	for _, d := range owned {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: d.DisplayName, Href: pathOfRecord(d.ID), Sub: d.Name}, {Mark: statusMark(d.Status)},
			sizeCell(d.SizeBytes, d.StorageQuota()), sizeCell(d.InBackups, q.BackupBytes),
			nameCell(d.Server, pathOfServer(d.ServerID)), web.Time(&d.CreatedAt),
		}})
	}
	at := pathOfOwner(a.ID)
	v := below(accountTab, "Accounts", a.Email)
	if m := suspensionMark(a.Suspension); m != nil {
		v.Marks = []*web.Mark{m}
		v.Lead = "Since " + web.Exact(*a.SuspendedAt) + ": " + a.SuspendedFor
	}
	v.Sections = []*web.Section{
		{ID: "account", Facts: []web.Fact{
			{Name: "Owner", Cell: web.Words(a.Name)}, {Name: "Plan", Cell: web.Words(string(a.Plan))},
			{Name: "Databases", Cell: partCell(a.Databases, q.Databases)}, {Name: "Deleted", Cell: web.Words(strconv.Itoa(a.Deleted))},
			{Name: "Size", Cell: web.Words(web.Bytes(a.Bytes))}, {Name: "Backups", Cell: web.Words(web.Bytes(a.InBackups))},
			{Name: "API keys", Cell: web.Words(strconv.Itoa(a.Keys))},
			{Name: "Namespaces", Cell: web.Words(strconv.Itoa(len(a.Namespaces)))}, {Name: "Since", Cell: web.Time(&a.CreatedAt)},
			{Name: "ID", Cell: web.MonoText(string(a.ID))},
		}, Links: []web.Link{{Text: "Its activity", Href: consolePath + auditTab + "?account=" + string(a.ID)}},
			Forms: []*web.Form{accountForm(at, a), suspensionForm(at, a)}},
		{ID: "databases", Title: "Databases", Table: t},
	}
	return v, nil
}

// suspensionMark is nil where an account is served.
func suspensionMark(s account.Suspension) *web.Mark {
	if !s.Suspended() {
		return nil
	}
	return &web.Mark{Text: "suspended", Tone: web.Warning}
}

func suspensionForm(at string, a operator.AccountDetails) *web.Form {
	if a.Suspended() {
		return &web.Form{
			Name: "operator.account.resume", Action: at + "/resume", Submit: "Resume the account", Fold: "Resume it",
			Intro: "Keys, sessions and passwords are what they were.", Fields: []*web.Field{reasonField()},
		}
	}
	reason := reasonField()
	reason.Help = "The customer reads it. The activity log has it, with your name."
	return &web.Form{
		Name: "operator.account.suspend", Action: at + "/suspend", Submit: "Suspend the account", Fold: "Suspend it", Danger: true,
		Intro: "Its keys and people are refused, and its databases take no clients, until it is resumed. Nothing is deleted, and " +
			"backups go on.",
		Fields: []*web.Field{web.Typed(a.Email), reason},
	}
}

// The choices of what an exception is: none, and for what is yes or no both.
const asPlanned = ""

func accountForm(at string, a operator.AccountDetails) *web.Form {
	own := account.Account{Plan: a.Plan}.Quotas()
	exception := func(name, label, value, planned string) *web.Field {
		return &web.Field{Name: name, Label: label, Value: value, Max: 20, Optional: true, Help: "Empty: " + planned + ", as planned."}
	}
	verify := asPlanned
	if a.VerifyBackups != nil {
		verify = strconv.FormatBool(*a.VerifyBackups)
	}
	enroll := &web.Field{Name: "autoEnroll", Label: "New databases are enrolled for every route", Type: "check", Optional: true}
	if a.AutoEnroll {
		enroll.Value = yes
	}
	copies := &web.Field{Name: "previewCopies", Label: "Previews may have data of databases", Type: "check", Optional: true}
	if a.PreviewCopies != nil && *a.PreviewCopies {
		copies.Value = yes
	}
	return &web.Form{
		Name: "operator.account.set", Action: at + "/set", Submit: "Change the account", Fold: "Change the plan and its exceptions",
		Fields: []*web.Field{
			{Name: "plan", Label: "Plan", Type: "select", Value: string(a.Plan), Options: options(account.Plans, "")},
			exception("maxDatabases", "Most databases", given(a.MaxDatabases, strconv.Itoa), strconv.Itoa(own.Databases)),
			exception("connectionCap", "Connections of a new database", given(a.ConnectionCap, strconv.Itoa),
				strconv.Itoa(own.ConnectionCap)),
			exception("databaseBytes", "Size of a database", given(a.DatabaseBytes, exactBytes), web.Bytes(own.DatabaseBytes)),
			exception("backupBytes", "Backups of a database", given(a.BackupBytes, exactBytes), web.Bytes(own.BackupBytes)),
			exception("backupDays", "Days that a backup is kept", given(a.BackupDays, strconv.Itoa), strconv.Itoa(own.BackupDays)),
			exception("pitrDays", "Days back of recovery to a point in time", given(a.PITRDays, strconv.Itoa), "what --pitr says"),
			exception("postgresVersion", "PostgreSQL of a new database", given(a.PostgresVersion, strconv.Itoa),
				strconv.Itoa(pgversion.Default)),
			{Name: "verifyBackups", Label: "Backups are verified", Type: "select", Value: verify, Options: []web.Option{
				{Value: asPlanned, Text: "as planned"}, {Value: "true", Text: "yes"}, {Value: "false", Text: "no"},
			}},
			exception("credentialValidity", "Validity of passwords of additional logins",
				given(a.CredentialValidity, time.Duration.String), "for ever"),
			copies, enroll, reasonField(),
		},
	}
}

// given is an exception as a text; empty where there is none.
func given[T any](exception *T, text func(T) string) string {
	if exception == nil {
		return asPlanned
	}
	return text(*exception)
}

// exactBytes is a size in its largest unit that divides it, as account.ParseBytes reads it.
func exactBytes(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d%s", n/unit.size, unit.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// exceptionOf reads an exception; nil where the field is empty. VALIDATION_ERROR on the field.
func exceptionOf[T any](r *web.Request, field, issue string, parse func(string) (T, error)) (*T, error) {
	text := strings.TrimSpace(r.Field(field))
	if text == asPlanned {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	value, err := parse(text)
	if err != nil {
		return nil, fault.Invalid(field, "%s", issue)
	}
	return &value, nil
}

// overridesOf reads the exceptions of an account.
func overridesOf(r *web.Request) (o account.Overrides, err error) {
	const whole = "must be a whole number"
	if o.MaxDatabases, err = exceptionOf(r, "maxDatabases", whole, strconv.Atoi); err != nil {
		return o, err
	}
	if o.ConnectionCap, err = exceptionOf(r, "connectionCap", whole, strconv.Atoi); err != nil {
		return o, err
	}
	if o.BackupDays, err = exceptionOf(r, "backupDays", whole, strconv.Atoi); err != nil {
		return o, err
	}
	if o.PITRDays, err = exceptionOf(r, "pitrDays", whole, strconv.Atoi); err != nil {
		return o, err
	}
	if o.PostgresVersion, err = exceptionOf(r, "postgresVersion", whole, strconv.Atoi); err != nil {
		return o, err
	}
	if r.Field("previewCopies") == yes {
		o.PreviewCopies = new(true)
	}
	size := account.ErrNoBytes.Error()
	if o.DatabaseBytes, err = exceptionOf(r, "databaseBytes", size, account.ParseBytes); err != nil {
		return o, err
	}
	if o.BackupBytes, err = exceptionOf(r, "backupBytes", size, account.ParseBytes); err != nil {
		return o, err
	}
	if o.VerifyBackups, err = exceptionOf(r, "verifyBackups", "choose one", strconv.ParseBool); err != nil {
		return o, err
	}
	o.CredentialValidity, err = exceptionOf(r, "credentialValidity", "must be a length of time, as in 720h", time.ParseDuration)
	return o, err
}

func (s *site) setAccount(r *web.Request) (web.Answer, error) {
	plan, err := account.ParsePlan(r.Field("plan"))
	if err != nil {
		return nil, err
	}
	exceptions, err := overridesOf(r)
	if err != nil {
		return nil, err
	}
	of, enroll := id.AccountID(r.Param("id")), r.Field("autoEnroll") == yes
	return s.ordered(r, pathOfOwner(of), func(ctx context.Context, o *operator.Operator, _ operation.Order) error {
		_, err := o.ChangeAccount(ctx, of, func(a *account.Account) { a.Plan, a.Overrides = plan, exceptions })
		if err == nil {
			err = o.SetAutoEnroll(ctx, of, enroll)
		}
		return err
	})
}

func (s *site) suspend(r *web.Request) (web.Answer, error) {
	of := id.AccountID(r.Param("id"))
	return s.ordered(r, pathOfOwner(of), func(ctx context.Context, o *operator.Operator, by operation.Order) error {
		a, err := o.Account(ctx, of)
		if err == nil {
			err = r.Confirm(a.Email)
		}
		if err == nil {
			_, err = o.Suspend(ctx, of, by.Reason)
		}
		return err
	})
}

func (s *site) resume(r *web.Request) (web.Answer, error) {
	of := id.AccountID(r.Param("id"))
	return s.ordered(r, pathOfOwner(of), func(ctx context.Context, o *operator.Operator, by operation.Order) error {
		_, err := o.Resume(ctx, of, by.Reason)
		return err
	})
}
