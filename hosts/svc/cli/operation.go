package cli

import (
	"strconv"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// took is how long an operation has run; nil for one that has not ended.
func took(o wire.Operation) any {
	if o.StartedAt == nil || o.FinishedAt == nil {
		return nil
	}
	return o.FinishedAt.Sub(*o.StartedAt)
}

// showOperation shows an operation, with its result or its error.
func (a *app) showOperation(o wire.Operation) error {
	var why any
	if o.Error != nil {
		why = string(o.Error.Code) + ": " + o.Error.Message
	}
	fields := []field{
		{"ID", o.ID},
		{"Type", o.Type},
		{"Database", o.DatabaseID},
		{"Status", o.Status},
		{"Stage", o.Stage},
		{"Progress", strconv.Itoa(o.Progress) + " %" + moved(o)},
		{"Created", o.CreatedAt},
		{"Took", took(o)},
	}
	if o.Result != nil {
		fields = append(fields, resultFields(*o.Result)...)
	}
	return a.showRecord(o, append(fields, field{"Error", why})...)
}
