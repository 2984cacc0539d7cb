package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/usage"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	core "github.com/pgherd/pgherd/core/usage"
)

func viewUsage(s usage.Series) wire.Data[wire.Usage] {
	return wire.Data[wire.Usage]{Data: wire.Usage{
		From: instant(s.From), To: instant(s.To), QuotaBytes: s.QuotaBytes, ConnectionCap: nullIfZero(s.ConnectionCap),
		Total: wire.UsageTotal{
			DatabaseHours: s.Sums.DatabaseHours(), ConnectionHours: s.Sums.ConnectionHours(),
			ByteHours: s.Sums.ByteHours, BackupByteHours: s.Sums.BackupByteHours,
		},
		Samples: mapped(s.Samples, viewSample),
	}}
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

type usageRoutes struct{ use *usage.Usage }

func (u usageRoutes) routes() []serve.Route {
	const form = "a time as 2026-11-01T00:00:00Z, or a day in UTC as 2026-11-01; "
	return []serve.Route{{
		Name: "getUsage", Summary: "Get what a database used, hour by hour, for 31 days at most",
		Method: http.MethodGet, Path: databasesPath + "/{id}/usage", Class: ratelimit.Read, Target: Database, Action: account.See,
		Query: []serve.Parameter{
			{Name: "from", Meaning: form + "30 days before the end if omitted"}, {Name: "to", Meaning: form + "now if omitted"},
		},
		Work: serve.OK(u.get),
	}}
}

func (u usageRoutes) get(r *serve.Request) (out wire.Data[wire.Usage], err error) {
	var ends [2]string
	for i, name := range []string{"from", "to"} {
		text, given, err := r.Query(name)
		if err == nil && given && text == "" {
			err = fault.Invalid(name, "must not be empty")
		}
		if ends[i] = text; err != nil {
			return out, err
		}
	}
	in, err := u.use.Period(ends[0], ends[1])
	if err != nil {
		return out, err
	}
	s, err := u.use.Of(r.Context(), databaseOf(r), in)
	return viewUsage(s), err
}
