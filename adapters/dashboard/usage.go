package dashboard

import (
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/pgherd/pgherd/adapters/dashboard/chart"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/usage"
	used "github.com/pgherd/pgherd/core/usage"
)

const billPath = "/account/usage"

func (s *site) usagePages() []web.Page {
	return []web.Page{
		web.Get("usage", "/databases/{id}"+usageTab, s.showUsage, "getUsage"),
		web.Get("bill", billPath, s.showBill, "listUsage"),
	}
}

func (s *site) showUsage(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	period, err := s.use.Usage.Period("", "", used.Hourly)
	if err != nil {
		return nil, err
	}
	series, err := s.use.Usage.Of(r.Context(), d, period, used.Hourly)
	if err != nil {
		return nil, err
	}
	v := frame(d, usageTab, "Usage")
	if len(series.Samples) == 0 {
		v.Sections = []*web.Section{{Empty: &web.Empty{
			Text: "Nothing was measured yet: an hour after its end has its figures here.", Command: "svc databases usage " +
				d.Record().Name,
		}}}
		return v, nil
	}
	v.Sections = []*web.Section{
		{ID: "size", Title: "Size", Chart: sizeChart(series)},
		{ID: "connections", Title: "Connections", Note: "On average of each hour.", Chart: connectionChart(series)},
		{ID: "queries", Title: "Queries", Chart: queryChart(series)},
		{ID: "days", Title: "Day by day", Table: dayTable(series.Samples)},
	}
	return v, nil
}

// lines begins a chart of a period.
func linesOf(title string, s usage.Series, format func(float64) string) chart.Lines {
	return chart.Lines{Title: title, From: s.From, To: s.To, Step: time.Hour, Format: format}
}

func points(list []used.Sample, value func(used.Sample) float64) (of []chart.Point) {
	for _, sample := range list {
		of = append(of, chart.Point{At: sample.Hour, Value: value(sample)})
	}
	return of
}

func bytesOf(v float64) string { return web.Bytes(int64(v)) }

func number(v float64) string {
	if v == 0 || v >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

func sizeChart(s usage.Series) template.HTML {
	c := linesOf("Size of the database in 30 days", s, bytesOf)
	c.Series = []chart.Series{{Name: "database", Points: points(s.Samples, func(x used.Sample) float64 { return float64(x.Bytes) })}}
	c.Limit, c.LimitIs = float64(s.QuotaBytes), "quota"
	return c.SVG()
}

func connectionChart(s usage.Series) template.HTML {
	c := linesOf("Connections in 30 days", s, number)
	c.Series = []chart.Series{
		{Name: "in use", Points: points(s.Samples, used.Sample.Connections)},
		{Name: "clients that wait", Points: points(s.Samples, used.Sample.Waiting)},
	}
	c.Limit, c.LimitIs = float64(s.ConnectionCap), "at most"
	return c.SVG()
}

func queryChart(s usage.Series) template.HTML {
	c := linesOf("Queries a second in 30 days", s, number)
	c.Series = []chart.Series{{Name: "queries a second", Points: points(s.Samples, func(x used.Sample) float64 {
		if x.SeenMs == 0 {
			return 0
		}
		return float64(x.Queries) * 1000 / float64(x.SeenMs)
	})}}
	return c.SVG()
}

// dayTable has the figures of the charts, a row for each day.
func dayTable(samples []used.Sample) *web.Table {
	t := &web.Table{
		Caption: "What was measured, the latest day first", Fold: "The figures of each day",
		Columns: []web.Column{
			{Title: "Day"}, {Title: "Size", Number: true}, {Title: "Backups", Number: true}, {Title: "Queries", Number: true},
			{Title: "Most connections", Number: true}, {Title: "Most waiting", Number: true}, {Title: "Hours measured", Number: true},
		},
	}
	for _, day := range slices.Backward(used.Daily.By(samples)) {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Words(day.Hour.Format("2 January")), web.Words(web.Bytes(day.Bytes)), web.Words(web.Bytes(day.BackupBytes)),
			web.Words(fmt.Sprint(day.Queries)), web.Words(fmt.Sprint(day.ActivePeak)), web.Words(fmt.Sprint(day.WaitingPeak)),
			web.Words(fmt.Sprintf("%.1f", day.Sums().DatabaseHours())),
		}})
	}
	return t
}

func (s *site) showBill(r *web.Request) (web.Answer, error) {
	month, err := s.use.Usage.Month(r.Query("month"))
	if err != nil {
		return nil, err
	}
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	bill, next, err := s.use.Usage.Account(r.Context(), r.Caller, month, used.Monthly, page)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "What each database came to, also those that are gone",
		Columns: []web.Column{
			{Title: "Database"}, {Title: "Hours", Number: true}, {Title: "Connection hours", Number: true},
			{Title: "GiB hours", Number: true},
			{Title: "GiB hours of backups", Number: true},
		},
		Empty: &web.Empty{Text: "Nothing was measured in this month."},
	}
	for _, line := range bill.Lines {
		cells := append([]web.Cell{web.Words(line.Name)}, sumCells(line.Sums)...)
		t.Rows = append(t.Rows, web.Row{Cells: cells})
	}
	here := billPath + "?month=" + used.FormatMonth(bill.Month)
	turned(t, here, page, next)
	total := sumCells(bill.Total)
	return &web.View{
		Title: "Usage in " + bill.Month.Format("January 2006"), Trail: []web.Link{{Text: "Account", Href: accountPath}},
		Sections: []*web.Section{
			{ID: "total", Title: "All together", Facts: []web.Fact{
				{Name: "Database hours", Cell: total[0]}, {Name: "Connection hours", Cell: total[1]}, {Name: "GiB hours", Cell: total[2]},
				{Name: "GiB hours of backups", Cell: total[3]},
			}},
			{ID: "lines", Title: "Database by database", Table: t, Links: []web.Link{
				{Text: "The month before", Href: billPath + "?month=" + used.FormatMonth(bill.Month.AddDate(0, -1, 0))},
			}},
		},
	}, nil
}

func sumCells(s used.Sums) []web.Cell {
	const gib = 1 << 30
	return []web.Cell{
		web.Words(fmt.Sprintf("%.1f", s.DatabaseHours())), web.Words(fmt.Sprintf("%.1f", s.ConnectionHours())),
		web.Words(fmt.Sprintf("%.2f", float64(s.ByteHours)/gib)), web.Words(fmt.Sprintf("%.2f", float64(s.BackupByteHours)/gib)),
	}
}

// backupStrip shows of each of the last thirty days whether there is a backup of it, and whether that is verified.
func backupStrip(all []backup.Backup, now time.Time) template.HTML {
	const shown = 30
	today := now.UTC().Truncate(24 * time.Hour)
	days := make([]chart.Day, shown)
	for i := range days {
		days[i].Text = today.AddDate(0, 0, i-shown+1).Format("2 January") + ": no backup that is still kept"
	}
	for _, b := range all {
		i := shown - 1 - int(today.Sub(b.CreatedAt.UTC().Truncate(24*time.Hour))/(24*time.Hour))
		if i < 0 || i >= shown || days[i].Tone == string(web.Good) {
			continue
		}
		day := today.AddDate(0, 0, i-shown+1).Format("2 January")
		days[i] = chart.Day{Text: day + ": a backup that was not verified", Tone: string(web.Warning)}
		if b.VerifiedAt != nil {
			days[i] = chart.Day{Text: day + ": a verified backup", Tone: string(web.Good)}
		}
	}
	return chart.Strip("Backups of the last 30 days", days)
}
