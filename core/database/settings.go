package database

import (
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// StorageStatus says what the quota of a database's bytes does to it.
type StorageStatus string

// The statuses.
const (
	StorageOK     StorageStatus = "ok"
	StorageFull   StorageStatus = "full"   // read-only by default for its logins
	StorageClosed StorageStatus = "closed" // its gate is shut as well, until the operator acts
)

// Values lists them.
func (StorageStatus) Values() []StorageStatus {
	return []StorageStatus{StorageOK, StorageFull, StorageClosed}
}

// Settings is what the service sets in a database for its logins, and how much of that its server is known to have. The server
// is always told all of it together: see package controlplane/settings.
type Settings struct {
	// SettingsGeneration grows with every change of TimeoutProfile or StorageStatus, and when the account is suspended or resumed;
	// SettingsApplied is the generation that the server is known to enforce.
	SettingsGeneration int64 `db:"settings_generation"`
	SettingsApplied    int64 `db:"settings_applied"`

	// TimeoutProfile is the profile that is wanted, TimeoutEffective the one that the server had at SettingsApplied, and
	// TimeoutOperation the last change that was asked for.
	TimeoutProfile   querytimeout.Profile `db:"timeout_profile"`
	TimeoutEffective querytimeout.Profile `db:"timeout_effective"`
	TimeoutOperation id.OperationID       `db:"timeout_operation"`

	// StorageStatus and StorageCeiling are the two parts of Storage.
	StorageStatus  StorageStatus `db:"storage_status"`
	StorageCeiling int64         `db:"storage_ceiling"`
}

// NoSettings are those of a new database.
func NoSettings() Settings {
	return Settings{
		TimeoutProfile: querytimeout.NotConfigured, TimeoutEffective: querytimeout.NotConfigured, StorageStatus: StorageOK,
	}
}

// Applied records that the server enforces a generation of the settings, in which the profile was this one. A generation older
// than what is known already changes nothing.
func (s *Settings) Applied(generation int64, profile querytimeout.Profile) {
	if generation > s.SettingsApplied {
		s.SettingsApplied, s.TimeoutEffective = generation, profile
	}
}
