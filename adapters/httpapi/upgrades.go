package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

type upgradeRoutes struct{ use *moves.Moves }

func (u upgradeRoutes) routes() []serve.Route {
	return []serve.Route{{
		Name: "confirmUpgrade", Summary: "Confirm an upgrade of PostgreSQL, which ends the way back to the version before it",
		Method: http.MethodPost, Path: databasesPath + "/{id}/confirm-upgrade", Class: ratelimit.Write,
		Target: Database, Action: account.Own, Work: serve.OK(u.confirm), Refusals: []fault.Code{fault.DatabaseStateConflict},
	}}
}

func (u upgradeRoutes) confirm(r *serve.Request) (wire.DataWithMessage[wire.ConfirmedUpgrade], error) {
	record, err := u.use.ConfirmUpgrade(r.Context(), databaseOf(r))
	view := wire.ConfirmedUpgrade{ID: record.ID, PostgresVersion: record.PostgresVersion}
	return wire.DataWithMessage[wire.ConfirmedUpgrade]{Message: "No way back is open.", Data: view}, err
}
