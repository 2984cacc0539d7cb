package dashboard

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/rollout"
)

// Settings are what an installation says of its dashboard.
type Settings struct {
	Product string // how the service is called
	// Mails says that the installation sends mails, so that people can reset their passwords.
	Mails bool
	// Pages are where the links of the dashboard lead.
	Pages mail.Pages
	// Console says that there are pages for operators.
	Console bool
	Version string // of this program
}

// site is all pages.
type site struct {
	use *controlplane.ControlPlane
	Settings
	once func() string
}

// Nav are the links of every page of a person.
var Nav = []web.Link{
	{Text: "Databases", Href: "/"}, {Text: "Previews", Href: "/previews"}, {Text: "Webhooks", Href: "/webhooks"},
	{Text: "API keys", Href: "/keys"}, {Text: "Account", Href: "/account"}, {Text: "Security", Href: "/security"},
}

// Pages is the table of pages. Once makes the key of a form that does the same however often it is sent.
func Pages(cp *controlplane.ControlPlane, of Settings, once func() string) []web.Page {
	s := &site{use: cp, Settings: of, once: once}
	return slices.Concat(
		s.entrancePages(), s.signOnPages(), s.invitationPages(), s.securityPages(), s.passkeyPages(),
		s.listPages(), s.createPages(), s.deletedPages(),
		s.overviewPages(), s.backupPages(), s.restorePages(), s.loginPages(), s.rolePages(), s.networkPages(), s.extensionPages(),
		s.timeoutPages(), s.activityPages(), s.memberPages(), s.settingPages(),
		s.keyPages(), s.ciPages(), s.webhookPages(), s.accountPages(), s.usagePages(), s.slowPages(),
		s.consolePages(),
	)
}

// client is where a request comes from, for use cases of people.
func client(r *web.Request) people.Client {
	return people.Client{Address: r.Client, Agent: r.Agent(), Device: r.Device(), RequestID: r.ID}
}

// reach finds the database of a page.
func (s *site) reach(r *web.Request, may account.Action, gates ...rollout.Gate) (access.Reached, error) {
	db := id.DatabaseID(r.Param("id"))
	r.About(string(db))
	return s.use.Access.Reach(r.Context(), r.Caller, db, may, gates...)
}

// open reports whether a capability that an operator opens is open for a database, so that its page is shown.
func (s *site) open(r *web.Request, gates ...rollout.Gate) bool {
	_, err := s.reach(r, account.See, gates...)
	return err == nil
}

// may reports whether the caller may do something with a database.
func may(d access.Reached, a account.Action) bool { return account.Permit(d.Standing(), a) == nil }

// The parts of a database's pages.
const (
	overviewTab   = ""
	backupsTab    = "/backups"
	loginsTab     = "/logins"
	networkTab    = "/network"
	extensionsTab = "/extensions"
	timeoutsTab   = "/timeouts"
	activityTab   = "/activity"
	membersTab    = "/members"
	settingsTab   = "/settings"
	usageTab      = "/usage"
	slowTab       = "/slow"
)

func pathOf(db id.DatabaseID) string { return "/databases/" + string(db) }

// frame is what is around every part of the pages of a database.
func frame(d access.Reached, tab, title string) *web.View { return framed(d, tab, title, true) }

// within is frame for a page below a part.
func within(d access.Reached, tab, title string) *web.View { return framed(d, tab, title, false) }

func framed(d access.Reached, tab, title string, part bool) *web.View {
	record := d.Record()
	v := &web.View{
		Title: record.DisplayName, Trail: []web.Link{{Text: "Databases", Href: "/"}},
		Marks: []*web.Mark{statusMark(record.Status)}, Watch: []id.DatabaseID{record.ID},
	}
	if part {
		v.Part = title
	} else {
		v.Trail = append(v.Trail, web.Link{Text: record.DisplayName, Href: pathOf(record.ID)})
		v.Title = title
	}
	if m := storageMark(record.StorageStatus); m != nil {
		v.Marks = append(v.Marks, m)
	}
	for _, t := range []struct {
		text, tab string
		needs     account.Action
	}{
		{"Overview", overviewTab, account.See}, {"Backups", backupsTab, account.See},
		{"Logins", loginsTab, account.See}, {"Network", networkTab, account.See},
		{"Extensions", extensionsTab, account.See}, {"Timeouts", timeoutsTab, account.Own},
		{"Usage", usageTab, account.See}, {"Slow queries", slowTab, account.Configure},
		{"Activity", activityTab, account.See}, {"Members", membersTab, account.Own},
		{"Settings", settingsTab, account.Configure},
	} {
		if may(d, t.needs) {
			v.Tabs = append(v.Tabs, web.Link{Text: t.text, Href: pathOf(record.ID) + t.tab, Here: t.tab == tab})
		}
	}
	return v
}

// to leads to a part of the database of a request.
func to(r *web.Request, tab string) web.Answer {
	return web.Redirect{To: "/databases/" + r.Param("id") + tab}
}

// identifier reads an ID that a form has sent. VALIDATION_ERROR on the field.
func identifier[T ~string](r *web.Request, field string) (T, error) {
	v, err := id.Parse[T](r.Field(field))
	if err != nil {
		return v, fault.Invalid(field, "choose one")
	}
	return v, nil
}

// lines are the texts of a field with one on each line.
func lines(text string) (list []string) {
	for line := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '\n' || c == '\r' || c == ',' || c == ' ' }) {
		list = append(list, line)
	}
	return list
}
