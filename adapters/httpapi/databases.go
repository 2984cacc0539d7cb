package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewDatabase(r database.Record) wire.Database { return viewSummary(r.Summary()) }

func viewSummary(s database.Summary) wire.Database {
	return wire.Database{
		ID: s.ID, Name: s.Name, DisplayName: s.DisplayName, Host: s.Host, Port: s.Port,
		Database: s.Name, Username: s.Name, // the owner's login has the database's name
		Status: s.Status, SizeBytes: s.SizeBytes, CreatedAt: instant(s.CreatedAt), Environment: nullIfZero(s.Environment),
		Storage:         wire.Storage{QuotaBytes: s.QuotaBytes, Status: s.StorageStatus},
		ScheduledBackup: s.Schedule, PostgresVersion: s.PostgresVersion, UpgradedFrom: s.WayBack,
	}
}

type databaseRoutes struct{ use *databases.Databases }

func (d databaseRoutes) routes() []serve.Route {
	const one = databasesPath + "/{id}"
	return []serve.Route{
		{
			Name: "listDatabases", Summary: "List the databases that the key can see",
			Method: http.MethodGet, Path: databasesPath, Class: ratelimit.Read,
			Work: serve.Paged(serve.WholeList, callerOf, d.use.List, viewDatabase),
		},
		{
			Name: "createDatabase", Summary: "Create a database",
			Method: http.MethodPost, Path: databasesPath, Class: ratelimit.Create, Key: serve.FullAccount, PlanRefusal: fault.PlanLimit,
			Body: serve.JSON[wire.CreateDatabase](), Idempotency: serve.Optional, NoStore: true, Work: serve.Created(d.create),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "getDatabase", Summary: "Get a database",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: DatabaseSummary, Action: account.See, Work: serve.OK(d.get),
		},
		{
			Name: "setDatabaseEnvironment", Summary: "Set or remove the environment label of a database",
			Method: http.MethodPatch, Path: one + "/environment", Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Body: serve.JSON[wire.SetEnvironment](), Work: serve.OK(d.setEnvironment),
			Refusals: []fault.Code{fault.DatabaseStateConflict},
		},
		{
			Name: "setDatabaseLifecycle", Summary: "Start, stop or restart a database",
			Method: http.MethodPost, Path: one + "/lifecycle", Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Body: serve.JSON[wire.SetLifecycle](), Work: serve.OK(d.setLifecycle),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.AgentError, fault.ServerBusy},
		},
	}
}

func (d databaseRoutes) get(r *serve.Request) (wire.Database, error) {
	return viewSummary(r.Target.(database.Summary)), nil
}

func (d databaseRoutes) create(r *serve.Request) (wire.CreatedDatabase, error) {
	b := serve.Decoded[wire.CreateDatabase](r)
	made, err := d.use.Create(r.Context(), r.Caller, databases.CreateRequest{
		Name: b.Name, DisplayName: b.DisplayName, RoleModel: b.RoleModel, Environment: b.Environment, Schedule: b.ScheduledBackup,
		PostgresVersion: b.PostgresVersion, Key: r.Key,
	})
	return viewMade(made), err
}

func viewMade(made databases.Created) wire.CreatedDatabase {
	view := wire.CreatedDatabase{
		Database: viewDatabase(made.Record), Password: made.Password, ConnectionString: made.ConnectionString,
	}
	view.Username = made.Username
	return view
}

func (d databaseRoutes) setEnvironment(r *serve.Request) (wire.DataWithMessage[wire.EnvironmentChange], error) {
	label := serve.Decoded[wire.SetEnvironment](r).Environment
	err := d.use.SetEnvironment(r.Context(), databaseOf(r), label)
	view := wire.EnvironmentChange{ID: databaseOf(r).Record().ID, Environment: label}
	return wire.DataWithMessage[wire.EnvironmentChange]{Message: "The environment was changed.", Data: view}, err
}

func (d databaseRoutes) setLifecycle(r *serve.Request) (wire.DataWithMessage[wire.LifecycleChange], error) {
	action := serve.Decoded[wire.SetLifecycle](r).Action
	status, err := d.use.SetLifecycle(r.Context(), databaseOf(r), action)
	view := wire.LifecycleChange{ID: databaseOf(r).Record().ID, Status: status}
	return wire.DataWithMessage[wire.LifecycleChange]{Message: lifecycleMessage(action), Data: view}, err
}

func lifecycleMessage(action database.Event) string {
	switch action {
	case database.Start:
		return "The database is started."
	case database.Stop:
		return "The database is stopped."
	default:
		return "The database was restarted."
	}
}
