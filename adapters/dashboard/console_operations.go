package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

const orderPath = consolePath + orderTab + "/{id}"

func (s *site) orderPages() []web.Page {
	return []web.Page{
		web.Get("operator.operations", consolePath+orderTab, s.look(s.showOrders)),
		web.Get("operator.operation", orderPath, s.look(s.showOrder)),
		web.Post("operator.operation.cancel", orderPath+"/cancel", orderPath, s.cancelOrder).Says("The operation is asked to end."),
		web.Post("operator.operation.retry", orderPath+"/retry", orderPath, s.retryOrder).Says("The operation is tried again now."),
		web.Post("operator.operation.fail", orderPath+"/fail", orderPath, s.failOrder).Says("The operation was ended as it says."),
	}
}

// states are the statuses that operations are chosen by.
var states = []struct {
	name, text string
	statuses   []operation.Status
}{
	{"open", "Open", []operation.Status{operation.Queued, operation.Running}},
	{"failed", "Failed", []operation.Status{operation.Failed}},
	{"all", "All", nil},
}

func (s *site) showOrders(r *web.Request, o *operator.Operator) (web.Answer, error) {
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	of := ports.OperationFilter{Statuses: states[0].statuses, Kind: operation.Kind(r.Query("kind"))}
	if of.ServerID, err = boundedByID[id.ServerID](r, "server"); err != nil {
		return nil, err
	}
	if of.DatabaseID, err = boundedByID[id.DatabaseID](r, "database"); err != nil {
		return nil, err
	}
	kept, at := url.Values{}, consolePath+orderTab
	for _, bound := range []web.Pair{
		{Name: "server", Value: string(of.ServerID)}, {Name: "database", Value: string(of.DatabaseID)},
		{Name: "kind", Value: string(of.Kind)},
	} {
		if bound.Value != "" {
			kept.Set(bound.Name, bound.Value)
		}
	}
	section := &web.Section{ID: "operations"}
	state := states[0].name
	for _, one := range states {
		kept.Set("state", one.name)
		here := one.name == r.Query("state") || one.name == state && r.Query("state") == ""
		if here {
			state, of.Statuses = one.name, one.statuses
		}
		section.Links = append(section.Links, web.Link{Text: one.text, Href: at + "?" + kept.Encode(), Here: here})
	}
	kept.Set("state", state)
	list, err := o.FindOperations(r.Context(), of, page.Beyond())
	if err != nil {
		return nil, err
	}
	list, next := ports.Cut(list, page, func(o ports.FoundOperation) ports.Position {
		return ports.Position{At: o.CreatedAt, ID: string(o.ID)}
	})
	section.Table = orderTable(r, list)
	section.Table.Filtered = state != "open" || of.Kind != "" || of.ServerID != "" || of.DatabaseID != ""
	turned(section.Table, at+"?"+kept.Encode(), page, next)
	v := console(orderTab, "Operations")
	v.Sections = []*web.Section{section}
	return v, nil
}

func orderTable(r *web.Request, list []ports.FoundOperation) *web.Table {
	t := &web.Table{
		Caption: "Operations of all databases, the latest first",
		Columns: []web.Column{
			{Title: "What"}, {Title: "Status"}, {Title: "Database"}, {Title: "Server"}, {Title: "Attempts", Number: true},
			{Title: "Asked for"}, {Title: "Takes"},
		},
		Empty: &web.Empty{Text: "Nothing is under way."},
	}
	for _, o := range list {
		status := web.Cell{Mark: orderMark(r, o.Operation), Sub: o.ErrorText}
		if o.Status == operation.Running {
			status.Sub = plain(o.Stage) + " " + status.Sub
		}
		until := r.Now
		if o.FinishedAt != nil {
			until = *o.FinishedAt
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: plain(o.Kind), Href: consolePath + orderTab + "/" + string(o.ID)}, status,
			nameCell(o.DatabaseName, pathOfRecord(o.DatabaseID)), nameCell(o.ServerName, pathOfServer(o.ServerID)),
			web.Words(strconv.Itoa(o.Attempts)), web.Time(&o.CreatedAt), web.Words(web.Span(until.Sub(o.CreatedAt))),
		}})
	}
	return t
}

// orderMark is operationMark, and tells what waits for another attempt from what waits for its turn.
func orderMark(r *web.Request, o operation.Operation) *web.Mark {
	if !o.Status.Final() && o.Attempts > 0 && o.NotBefore.After(r.Now) {
		return &web.Mark{Text: "waits for its next attempt", Tone: web.Warning}
	}
	return operationMark(o)
}

func (s *site) showOrder(r *web.Request, u *operator.Operator) (web.Answer, error) {
	o, err := u.Operation(r.Context(), id.OperationID(r.Param("id")))
	if fault.Has(err, fault.OperationNotFound) {
		return nil, web.ErrNothing()
	}
	if err != nil {
		return nil, err
	}
	r.About(string(o.DatabaseID))
	section := &web.Section{ID: "operation", Facts: []web.Fact{
		{Name: "Stage", Cell: web.Words(orNone(plain(o.Stage)))},
		{Name: "Attempts", Cell: web.Words(strconv.Itoa(o.Attempts))}, {Name: "Asked for", Cell: web.Time(&o.CreatedAt)},
		{Name: "By", Cell: web.Words(o.Actor.Name)}, {Name: "Begun", Cell: web.Time(o.StartedAt)},
		{Name: "Ended", Cell: web.Time(o.FinishedAt)}, {Name: "Request", Cell: web.MonoText(o.RequestID)},
		{Name: "ID", Cell: web.MonoText(string(o.ID))},
	}, Links: []web.Link{
		{Text: "Its database", Href: pathOfRecord(o.DatabaseID)}, {Text: "Its server", Href: pathOfServer(o.ServerID)},
	}}
	if o.ErrorText != "" {
		section.Alert = &web.Alert{Text: o.ErrorText, Code: string(o.ErrorCode)}
	}
	if o.Status == operation.Running {
		section.Facts = append(section.Facts, web.Fact{Name: "Progress", Cell: progressCell(o)})
	}
	if !o.Status.Final() {
		section.Facts = append(section.Facts, web.Fact{Name: "Not before", Cell: web.Time(&o.NotBefore)},
			web.Fact{Name: "Worker", Cell: web.Cell{Text: orNone(o.Owner), Sub: fmt.Sprintf("epoch %d", o.Epoch)}})
		section.Forms = orderForms(o)
	}
	v := below(orderTab, "Operations", "Operation: "+plain(o.Kind))
	v.Marks = []*web.Mark{orderMark(r, o)}
	v.Sections = []*web.Section{section}
	return v, nil
}

func orderForms(o operation.Operation) []*web.Form {
	at := consolePath + orderTab + "/" + string(o.ID)
	return []*web.Form{
		{
			Name: "operator.operation.retry", Action: at + "/retry", Submit: "Try it now", Fold: "Try it again now",
			Intro: "Workers take it up at once, instead of at its next attempt.", Fields: []*web.Field{reasonField()},
		},
		{
			Name: "operator.operation.cancel", Action: at + "/cancel", Submit: "Ask it to end", Fold: "Cancel it",
			Intro:  "As its customer could: it ends as soon as it can be taken back, or not at all.",
			Fields: []*web.Field{reasonField()},
		},
		{
			Name: "operator.operation.fail", Action: at + "/fail", Submit: "End it", Fold: "End it", Danger: true,
			Intro: "For one that does not end by itself. Its server takes back what it began; what has come too far for that succeeds " +
				"or goes on. The end of a purge puts the database into service. The customer sees the reason.",
			Fields: []*web.Field{
				{Name: "serverGone", Label: "Its server is gone for good, is disabled, and nothing answers there: do not ask it",
					Type: "check", Optional: true},
				web.Typed(plain(o.Kind)), reasonField(),
			},
		},
	}
}

func (s *site) cancelOrder(r *web.Request) (web.Answer, error) {
	return s.orderOne(r, func(ctx context.Context, o *operator.Operator, op id.OperationID, _ operation.Order) error {
		_, err := o.CancelOperation(ctx, op)
		return err
	})
}

func (s *site) retryOrder(r *web.Request) (web.Answer, error) {
	return s.orderOne(r, func(ctx context.Context, o *operator.Operator, op id.OperationID, by operation.Order) error {
		_, err := o.RetryOperation(ctx, op, by)
		return err
	})
}

func (s *site) failOrder(r *web.Request) (web.Answer, error) {
	return s.orderOne(r, func(ctx context.Context, o *operator.Operator, op id.OperationID, by operation.Order) error {
		of, err := o.Operation(ctx, op)
		if err == nil {
			err = r.Confirm(plain(of.Kind))
		}
		if err != nil {
			return err
		}
		by.ServerGone = r.Field("serverGone") == yes
		_, err = o.FailOperation(ctx, op, by)
		return err
	})
}

func (s *site) orderOne(
	r *web.Request, do func(context.Context, *operator.Operator, id.OperationID, operation.Order) error,
) (web.Answer, error) {
	op := id.OperationID(r.Param("id"))
	return s.ordered(r, consolePath+orderTab+"/"+string(op), func(
		ctx context.Context, o *operator.Operator, by operation.Order,
	) error {
		return do(ctx, o, op, by)
	})
}
