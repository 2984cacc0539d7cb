package spec

import (
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/audit"
)

var upgrading = []Scenario{
	{Name: "an upgrade of PostgreSQL is confirmed, and the record says until then where it came from", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.That(made.UpgradedFrom == 0, "a new database came from PostgreSQL %d", made.UpgradedFrom)
		s.OK(s.Operator.PretendUpgrade(made.ID))
		seen := ada.Sees(made.ID)
		s.That(seen.PostgresVersion == 17 && seen.UpgradedFrom == 16, "the record says %+v", seen)
		for range 2 {
			confirmed := must(ada.Databases.ConfirmUpgrade(ctx, made.ID))(s)
			s.That(confirmed == wire.ConfirmedUpgrade{ID: made.ID, PostgresVersion: 17}, "the answer is %+v", confirmed)
		}
		seen = ada.Sees(made.ID)
		s.That(seen.PostgresVersion == 17 && seen.UpgradedFrom == 0, "the record says %+v", seen)
		logged := s.only(ada.ReadsActivity(made.ID), audit.UpgradeConfirmed)
		s.That(logged.Details["wayBack"] == "16" && strings.HasPrefix(logged.Actor, "key:"), "the log says %+v", logged)
	}},
	{Name: "an operator confirms an upgrade, and the log says why", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Operator.PretendUpgrade(made.ID))
		s.OK(s.Operator.ConfirmUpgrade(made.ID, "the owner has said so by telephone"))
		s.That(ada.Sees(made.ID).UpgradedFrom == 0, "the way back is still open")
		logged := s.only(ada.ReadsActivity(made.ID), audit.UpgradeConfirmed)
		why := logged.Details["reason"]
		s.That(logged.Actor == "operator" && why == "the owner has said so by telephone", "the log says %+v", logged)
	}},
}
