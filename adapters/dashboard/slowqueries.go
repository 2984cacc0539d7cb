package dashboard

import (
	"fmt"
	"time"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/slowquery"
)

func (s *site) slowPages() []web.Page {
	return []web.Page{web.Get("slow", "/databases/{id}"+slowTab, s.showSlow, "getSlowQueries")}
}

// orderParameter names what comes first.
const orderParameter = "order"

func (s *site) showSlow(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	order := slowquery.ByTotal
	if text := r.Query(orderParameter); text != "" {
		if order, err = slowquery.ParseOrder(text); err != nil {
			return nil, err
		}
	}
	list, err := s.use.SlowQueries.List(r.Context(), d, order)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Statements of the database's logins, without their constants",
		Columns: []web.Column{
			{Title: "Statement"}, {Title: "Login"}, {Title: "Time", Number: true}, {Title: "Each time", Number: true},
			{Title: "Longest", Number: true},
			{Title: "Calls", Number: true}, {Title: "Rows", Number: true},
		},
		Empty: &web.Empty{Text: "No statement was counted yet.", Command: "svc databases slow-queries " + d.Record().Name},
	}
	for _, q := range list.Statements {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.MonoText(q.Text), web.MonoText(q.Username), web.Words(milliseconds(q.TotalMs)), web.Words(milliseconds(q.MeanMs)),
			web.Words(milliseconds(q.MaxMs)), web.Words(fmt.Sprint(q.Calls)), web.Words(fmt.Sprint(q.Rows)),
		}})
	}
	note := "Counted since " + web.Exact(list.Since) + "."
	if list.Evicted {
		note += " The server has forgotten statements since, to make room for others."
	}
	at := under(d.Record().ID, "slow")
	v := frame(d, slowTab, "Slow queries")
	v.Sections = []*web.Section{{ID: "slow", Note: note, Table: t, Links: []web.Link{
		{Text: "Most time", Href: at, Here: order == slowquery.ByTotal},
		{Text: "Longest each time", Href: at + "?order=mean", Here: order == slowquery.ByMean},
		{Text: "Most often", Href: at + "?order=calls", Here: order == slowquery.ByCalls},
	}}}
	return v, nil
}

func milliseconds(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.1f s", ms/float64(time.Second/time.Millisecond))
	}
	return fmt.Sprintf("%.2g ms", ms)
}
