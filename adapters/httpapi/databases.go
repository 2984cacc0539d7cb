package httpapi

import (
	"time"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// databaseView is the spec's database record without what only create returns.
type databaseView struct {
	ID          id.DatabaseID         `json:"id" format:"uuid"`
	Name        string                `json:"name"`
	DisplayName string                `json:"displayName"`
	Host        string                `json:"host"`
	Port        int                   `json:"port"`
	Database    string                `json:"database"`
	Username    string                `json:"username"`
	Status      database.Status       `json:"status" enum:"creating,active,stopped,deleting,error"`
	SizeBytes   int64                 `json:"sizeBytes"`
	CreatedAt   time.Time             `json:"createdAt"`
	Environment *database.Environment `json:"environment" enum:"production,staging,development,other"`
}

// createdView adds password and connection string; a repeated request has neither once the owner's password has changed.
type createdView struct {
	databaseView
	Password         string `json:"password,omitzero"`
	ConnectionString string `json:"connectionString,omitzero"`
}

func viewDatabase(r database.Record) databaseView {
	return databaseView{
		ID: r.ID, Name: r.Name, DisplayName: r.DisplayName, Host: r.Host, Port: r.Port,
		Database: r.Name, Username: r.Name, // the owner's login has the database's name
		Status: r.Status, SizeBytes: r.SizeBytes, CreatedAt: instant(r.CreatedAt), Environment: environmentOrNull(r.Environment),
	}
}

func environmentOrNull(e database.Environment) *database.Environment {
	if e == "" {
		return nil
	}
	return &e
}

type databases struct{ use *controlplane.Databases }

func (d databases) list(r *Request) (Answer, error) {
	page, err := r.Page()
	if err != nil {
		return Answer{}, err
	}
	records, next, err := d.use.List(r.Context(), r.Caller, page)
	if err != nil {
		return Answer{}, err
	}
	return Paged(records, viewDatabase, next), nil
}

func (d databases) get(r *Request) (Answer, error) {
	record, err := d.use.Get(r.Context(), r.reached())
	if err != nil {
		return Answer{}, err
	}
	return OK(viewDatabase(record)), nil
}

type createBody struct {
	Name            *string          `json:"name" required:"true" doc:"3-50 lowercase letters, digits and hyphens"`
	DisplayName     *string          `json:"displayName" required:"true" doc:"1-64 characters"`
	RoleModel       *string          `json:"roleModel" enum:"managed,single_login"`
	Environment     Nullable[string] `json:"environment" enum:"production,staging,development,other"`
	ScheduledBackup *string          `json:"scheduledBackup" enum:"none,daily"`
}

func (d databases) create(r *Request) (Answer, error) {
	request, err := Decoded[createBody](r).request()
	if err != nil {
		return Answer{}, err
	}
	request.Key = r.Key
	made, err := d.use.Create(r.Context(), r.Caller, request)
	if err != nil {
		return Answer{}, err
	}
	view := createdView{viewDatabase(made.Record), made.Password, made.ConnectionString}
	view.Username = made.Username
	return Created(view), nil
}

func (b *createBody) request() (c controlplane.CreateRequest, err error) {
	c.Name, c.DisplayName = *b.Name, *b.DisplayName
	if b.RoleModel != nil {
		if c.RoleModel, err = database.ParseRoleModel(*b.RoleModel); err != nil {
			return c, err
		}
	}
	if b.ScheduledBackup != nil {
		if c.Schedule, err = database.ParseSchedule(*b.ScheduledBackup); err != nil {
			return c, err
		}
	}
	c.Environment, err = parseEnvironment(b.Environment)
	return c, err
}

// parseEnvironment reads null and an absent field as no label.
func parseEnvironment(n Nullable[string]) (database.Environment, error) {
	label := n.Pointer()
	if label == nil {
		return "", nil
	}
	return database.ParseEnvironment(*label)
}

type environmentBody struct {
	Environment Nullable[string] `json:"environment" required:"true" enum:"production,staging,development,other"`
}

type environmentView struct {
	ID          id.DatabaseID         `json:"id" format:"uuid"`
	Environment *database.Environment `json:"environment" enum:"production,staging,development,other"`
}

func (d databases) setEnvironment(r *Request) (Answer, error) {
	label, err := parseEnvironment(Decoded[environmentBody](r).Environment)
	if err != nil {
		return Answer{}, err
	}
	if err := d.use.SetEnvironment(r.Context(), r.reached(), label); err != nil {
		return Answer{}, err
	}
	view := environmentView{r.reached().Record().ID, environmentOrNull(label)}
	return OK(told[environmentView]{"The environment was changed.", view}), nil
}

type lifecycleBody struct {
	Action *string `json:"action" required:"true" enum:"start,stop,restart"`
}

type lifecycleView struct {
	ID     id.DatabaseID   `json:"id" format:"uuid"`
	Status database.Status `json:"status" enum:"creating,active,stopped,deleting,error"`
}

func (d databases) setLifecycle(r *Request) (Answer, error) {
	action, err := database.ParseLifecycle(*Decoded[lifecycleBody](r).Action)
	if err != nil {
		return Answer{}, err
	}
	status, err := d.use.SetLifecycle(r.Context(), r.reached(), action)
	if err != nil {
		return Answer{}, err
	}
	return OK(told[lifecycleView]{lifecycleMessage(action), lifecycleView{r.reached().Record().ID, status}}), nil
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
