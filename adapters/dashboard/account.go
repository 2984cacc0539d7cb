package dashboard

import (
	"fmt"
	"strconv"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
)

const accountPath = "/account"

func (s *site) accountPages() []web.Page {
	return []web.Page{web.Get("account", accountPath, s.showAccount)}
}

func (s *site) showAccount(r *web.Request) (web.Answer, error) {
	of, user := r.Caller.Account, r.Caller.User
	q := of.Quotas()
	validity := "for ever"
	if q.CredentialValidity > 0 {
		validity = fmt.Sprintf("%d days", int(q.CredentialValidity.Hours()/24))
	}
	back := "no"
	if days := s.use.Moments.Days(of); days > 0 {
		back = fmt.Sprintf("the last %d days", days)
	}
	return &web.View{Title: "Account", Sections: []*web.Section{
		{ID: "you", Title: "You", Facts: []web.Fact{
			{Name: "Name", Cell: web.Words(user.Name)}, {Name: "E-mail address", Cell: web.Words(user.Email)},
			{Name: "Since", Cell: web.Time(&of.CreatedAt)}, {Name: "Account ID", Cell: web.MonoText(string(of.ID))},
		}, Links: []web.Link{{Text: "Password, passkeys and sessions", Href: securityPath}}},
		{ID: "plan", Title: "Plan " + string(of.Plan), Facts: []web.Fact{
			{Name: "Databases", Cell: web.Words(strconv.Itoa(q.Databases))},
			{Name: "Size of a database", Cell: web.Words(web.Bytes(q.DatabaseBytes))},
			{Name: "Connections of a database", Cell: web.Words(strconv.Itoa(q.ConnectionCap))},
			{Name: "Backups of a database", Cell: web.Words(web.Bytes(q.BackupBytes))},
			{Name: "A backup is kept", Cell: web.Words(fmt.Sprintf("%d days", q.BackupDays))},
			{Name: "Recovery to a point in time", Cell: web.Words(back)},
			{Name: "Backups are verified", Cell: web.Words(yesNo(q.VerifyBackups))},
			{Name: "API access", Cell: web.Words(yesNo(of.Plan.AllowsAPI()))},
			{Name: "Passwords of additional logins", Cell: web.Words("work " + validity)},
		}, Links: []web.Link{{Text: "Usage by month", Href: billPath}}},
	}}, nil
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
