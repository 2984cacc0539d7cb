package app

import (
	"strconv"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// Took is how long an operation has run; nil for one that has not ended.
func Took(o wire.Operation) any {
	if o.StartedAt == nil || o.FinishedAt == nil {
		return nil
	}
	return o.FinishedAt.Sub(*o.StartedAt)
}

// ShowOperation shows an operation, with its result or its error.
func (a *App) ShowOperation(o wire.Operation) error {
	var why any
	if o.Error != nil {
		why = string(o.Error.Code) + ": " + o.Error.Message
	}
	fields := []Field{
		{"ID", o.ID},
		{"Type", o.Type},
		{"Database", o.DatabaseID},
		{"Status", o.Status},
		{"Stage", o.Stage},
		{"Progress", strconv.Itoa(o.Progress) + " %" + moved(o)},
		{"Created", o.CreatedAt},
		{"Took", Took(o)},
	}
	if o.Result != nil {
		fields = append(fields, resultFields(*o.Result)...)
	}
	return a.ShowRecord(o, append(fields, Field{"Error", why})...)
}
