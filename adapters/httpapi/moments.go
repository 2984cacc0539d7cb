package httpapi

import (
	"net/http"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/certificates"
	"github.com/pgherd/pgherd/core/controlplane/moments"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/recovery"
)

type momentRoutes struct {
	use  *moments.Moments
	sign *certificates.Certificates
}

func (x momentRoutes) routes() []serve.Route {
	return []serve.Route{{
		Name: "getRecoveryCertificate", Summary: "Get the signed proof that a moment of a database was had back",
		Method: http.MethodGet, Path: databasesPath + "/{id}/recovery-certificate", Class: ratelimit.Read, Target: Archived,
		Action: account.See, Work: serve.OK(x.certificate),
		Refusals: []fault.Code{fault.FeatureNotAvailable, fault.CertificateNotFound},
	}, {
		Name: "getRecoveryWindow", Summary: "Get as of which moments a database can be had back, also a deleted one",
		Method: http.MethodGet, Path: databasesPath + "/{id}/recovery-window", Class: ratelimit.Read, Target: Archived,
		Action: account.See, Work: serve.OK(x.get),
		Refusals: []fault.Code{
			fault.FeatureNotAvailable, fault.DatabaseStateConflict, fault.AgentError, fault.AgentRouteUnavailable,
		},
	}}
}

func (x momentRoutes) get(r *serve.Request) (wire.RecoveryWindow, error) {
	s, err := x.use.Window(r.Context(), databaseOf(r))
	return wire.RecoveryWindow{
		From: nullIfZero(instant(s.From)), To: nullIfZero(instant(s.To)), Gaps: mapped(s.Gaps, viewGap), Archived: s.Archived,
		PlanDays: s.Days, LastDrill: viewDrill(s.LastDrill, databaseOf(r)), ProvenFrom: instantOrNull(s.ProvenFrom),
	}, err
}

func (x momentRoutes) certificate(r *serve.Request) (wire.Certificate, error) {
	made, err := x.sign.IssueRecovery(r.Context(), databaseOf(r))
	return wire.Certificate{KeyID: made.KeyID, Document: made.Document, Signature: made.Signature}, err
}

// viewDrill does not say of which other database one was.
func viewDrill(d *drill.Drill, of access.Reached) *wire.RecoveryDrill {
	if d == nil {
		return nil
	}
	scope := wire.DrillOfServer
	if d.DatabaseID == of.Record().ID {
		scope = wire.DrillOfDatabase
	}
	return &wire.RecoveryDrill{
		RanAt: instant(*d.EndedAt), PointInTime: instant(d.PointInTime), Outcome: d.Outcome, Scope: scope, Seconds: d.Seconds(),
	}
}

// momentOf is the moment that a body asks for, nil where it asks for none.
func momentOf(text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	at, err := recovery.Parse(*text)
	return &at, err
}

func viewGap(g recovery.Gap) wire.RecoveryGap {
	return wire.RecoveryGap{From: instant(g.From), To: instant(g.To), Reason: g.Reason}
}
