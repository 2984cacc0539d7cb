package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewActivity(by base.By[audit.Entry]) wire.Activity {
	e := by.What
	return wire.Activity{
		ID: e.ID, At: instant(e.At), Actor: e.Actor.Name, Person: viewPerson(by.Person), Action: e.Action, Details: e.Details,
	}
}

func viewPerson(u *account.User) *wire.Person {
	if u == nil {
		return nil
	}
	return &wire.Person{UserID: u.ID, Name: u.Name}
}

type activityRoutes struct{ use *operations.Activity }

func (a activityRoutes) routes() []serve.Route {
	return []serve.Route{{
		Name: "listActivity", Summary: "List the activity log of a database, newest first",
		Method: http.MethodGet, Path: databasesPath + "/{id}/activity", Class: ratelimit.Read,
		Target: Database, Action: account.See, Work: serve.Paged(serve.LongList, databaseOf, a.use.List, viewActivity),
	}}
}
