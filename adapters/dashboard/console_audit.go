package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

func (s *site) auditPages() []web.Page {
	return []web.Page{web.Get("operator.audit", consolePath+auditTab, s.look(s.showAudit))}
}

func (s *site) showAudit(r *web.Request, o *operator.Operator) (web.Answer, error) {
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	at, v := consolePath+auditTab, console(auditTab, "Audit")
	v.Lead = "What was done to the installation as a whole. The logs of an account and of a database are on their pages."
	var list operator.Entries
	switch of, db := r.Query("account"), r.Query("database"); {
	case of != "":
		at, v.Lead = web.WithQuery(at, "account", of), "What was done to one account, and to its databases."
		v.Main = &web.Link{Text: "The account", Href: pathOfOwner(id.AccountID(of))}
		list, err = logOf(of, func(a id.AccountID) (operator.Entries, error) { return o.AccountAudit(r.Context(), a, page.Beyond()) })
	case db != "":
		at, v.Lead = web.WithQuery(at, "database", db), "What was done to one database."
		v.Main = &web.Link{Text: "The database", Href: pathOfRecord(id.DatabaseID(db))}
		list, err = logOf(db, func(d id.DatabaseID) (operator.Entries, error) { return o.Audit(r.Context(), d, page.Beyond()) })
	default:
		list, err = o.InstallationAudit(r.Context(), page.Beyond())
	}
	if err != nil {
		return nil, found(err)
	}
	list, next := ports.Cut(list, page, func(e base.By[audit.Entry]) ports.Position {
		return ports.Position{At: e.What.At, ID: string(e.What.ID)}
	})
	t := entryTable("What was done, the latest first", list)
	t.Empty = &web.Empty{Text: "The log has nothing yet."}
	turned(t, at, page, next)
	v.Sections = []*web.Section{{ID: "audit", Table: t}}
	return v, nil
}

// logOf reads the log of what an address names. It is nothing where the address names nothing.
func logOf[T ~string](text string, read func(T) (operator.Entries, error)) (operator.Entries, error) {
	of, err := id.Parse[T](text)
	if err != nil {
		return nil, web.ErrNothing()
	}
	return read(of)
}
