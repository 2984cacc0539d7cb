package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/usage"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	core "github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

func viewUsage(s usage.Series) wire.Data[wire.Usage] {
	return wire.Data[wire.Usage]{Data: wire.Usage{
		From: instant(s.From), To: instant(s.To), Resolution: s.Resolution, QuotaBytes: s.QuotaBytes,
		ConnectionCap: nullIfZero(s.ConnectionCap), Total: viewSums(s.Sums), Samples: mapped(s.Samples, viewSample),
	}}
}

func viewSums(s core.Sums) wire.UsageTotal {
	return wire.UsageTotal{
		DatabaseHours: s.DatabaseHours(), ConnectionHours: s.ConnectionHours(), ByteHours: s.ByteHours,
		BackupByteHours: s.BackupByteHours,
	}
}

func viewSample(s core.Sample) wire.UsageSample {
	return wire.UsageSample{
		At: instant(s.Hour), SeenSeconds: (s.SeenMs + 500) / 1000, SizeBytes: s.Bytes, BackupBytes: s.BackupBytes,
		Connections: wire.UsageConnections{
			Active:  wire.UsageLevel{Average: s.Connections(), Peak: s.ActivePeak},
			Waiting: wire.UsageLevel{Average: s.Waiting(), Peak: s.WaitingPeak},
			Cap:     nullIfZero(s.ConnectionCap),
		},
		Queries: s.Queries, WaitMs: s.WaitUs / 1000,
	}
}

func viewLine(l usage.Line) wire.DatabaseUsage {
	return wire.DatabaseUsage{
		DatabaseID: l.DatabaseID, DatabaseName: l.Name, Total: viewSums(l.Sums),
		Parts: mapped(l.Parts, func(p core.Part) wire.UsagePart {
			return wire.UsagePart{At: instant(p.At), UsageTotal: viewSums(p.Sums)}
		}),
	}
}

type usageRoutes struct{ use *usage.Usage }

const resolutionParameter = "resolution"

func (u usageRoutes) routes() []serve.Route {
	const form = "a time as 2026-11-01T00:00:00Z, or a day in UTC as 2026-11-01; "
	by := serve.Parameter{Name: resolutionParameter, Meaning: "how long the stretches are; hourly if omitted"}
	for _, r := range core.Resolutions {
		by.Enum = append(by.Enum, string(r))
	}
	byMonth := by
	byMonth.Meaning = "what the month is divided into; monthly if omitted. By hours or days, a page has 20 databases at most"
	return []serve.Route{
		{
			Name: "getUsage", Summary: "Get what a database used, for 31 days at most by hours, and else for 400",
			Method: http.MethodGet, Path: databasesPath + "/{id}/usage", Class: ratelimit.Read, Target: Database, Action: account.See,
			Query: []serve.Parameter{
				{Name: "from", Meaning: form + "30 days before the end if omitted, and 365 days where it is by months"},
				{Name: "to", Meaning: form + "now if omitted"}, by,
			},
			Work: serve.WithCSV(serve.OK(u.get), seriesTable),
		},
		{
			Name: "listUsage", Summary: "List what the databases of the account came to in a month, also those that are gone",
			Method: http.MethodGet, Path: keyed + "/usage", Class: ratelimit.Read,
			Query: []serve.Parameter{{Name: "month", Meaning: "as 2026-11, in UTC; the present one if omitted"}, byMonth},
			Work:  serve.WithCSV(serve.PagedOf(serve.LongList, u.bill, u.list, viewLine), billTable),
		},
	}
}

// choices reads texts of the query, and a resolution. VALIDATION_ERROR on what is empty, or no resolution.
func choices(r *serve.Request, usual core.Resolution, names ...string) (texts []string, by core.Resolution, err error) {
	for _, name := range names {
		text, given, err := r.Query(name)
		if err == nil && given && text == "" {
			err = fault.Invalid(name, "must not be empty")
		}
		if texts = append(texts, text); err != nil {
			return nil, "", err
		}
	}
	text, given, err := r.Query(resolutionParameter)
	if err != nil || !given {
		return texts, usual, err
	}
	by, err = core.ParseResolution(text)
	return texts, by, err
}

func (u usageRoutes) get(r *serve.Request) (out wire.Data[wire.Usage], err error) {
	ends, by, err := choices(r, core.Hourly, "from", "to")
	if err != nil {
		return out, err
	}
	in, err := u.use.Period(ends[0], ends[1], by)
	if err != nil {
		return out, err
	}
	s, err := u.use.Of(r.Context(), databaseOf(r), in, by)
	return viewUsage(s), err
}

// bill is a month of an account.
type bill struct {
	of    access.Caller
	month time.Time
	by    core.Resolution
}

func (u usageRoutes) bill(r *serve.Request) (b bill, err error) {
	texts, by, err := choices(r, core.Monthly, "month")
	if err != nil {
		return b, err
	}
	b = bill{of: r.Caller, by: by}
	b.month, err = u.use.Month(texts[0])
	return b, err
}

func (u usageRoutes) list(ctx context.Context, b bill, p ports.Page) ([]usage.Line, *ports.Position, error) {
	found, next, err := u.use.Account(ctx, b.of, b.month, b.by, p)
	return found.Lines, next, err
}

func seriesTable(out wire.Data[wire.Usage]) (rows [][]string, next *string) {
	return wire.SampleTable(out.Data.Samples), nil
}

func billTable(out wire.Page[wire.DatabaseUsage]) (rows [][]string, next *string) {
	return wire.PartTable(out.Data), out.NextCursor
}
