package spec

import "slices"

// Scenario is one story. Play fails the test of its stage where the service behaves otherwise.
type Scenario struct {
	Area  string
	Name  string
	Needs []Ability // beyond what every driver can do
	// Alone keeps other scenarios from the same service meanwhile: the story changes something for everybody.
	Alone bool
	// Both plays the story a second time, over databases with a single login.
	Both bool
	Play func(s *Stage)
}

// Scenarios lists every story, area by area.
func Scenarios() []Scenario {
	return withBoth(
		of("create", creating), of("names", naming), of("quota", quotas), of("idempotency", repeating),
		of("visibility", seeing), of("environment", labelling), of("lifecycle", startingAndStopping), of("upgrade", upgrading),
		of("allowlist", allowlisting), of("query-timeout", limitingQueries), of("slow-query", slowing),
		of("activity", recording), of("usage", using),
		of("backup", backingUp), of("certificate", certifying), of("recovery", windowing), of("retention", retaining),
		of("schedule", scheduling), of("storage", losingTheStorage), of("storage-quota", limitingBytes), of("agent", losingTheAgent),
		of("operation", operating), of("member", sharing), of("members", inviting), of("right", permitting),
		of("key", changingKeys), of("suspension", suspending), of("ordered", ordering), of("rate", limiting),
		of("maintenance", maintaining), of("page", paging), of("wire", talkingHTTP), of("isolation", isolating),
		of("order", checking), of("body", reading), of("owner", owning), of("secret", keepingSecrets), of("outage", losingParts),
		of("webhook", keepingWebhooks), of("event", hearing),
		of("restore", restoring), of("restore", reserving), of("restore", restoringPlain), of("restore", restoringThen),
		of("legacy-restore", restoringRoles),
		of("clone", cloning), of("clone", refusingClones), of("clone", cloningThen), of("rescue", rescuing), of("look", looking),
		of("deletion", deleting), of("move", moving),
		of("upload", uploading), of("preview", previewing), of("preview", endingPreviews),
		of("preview", copyingPreviews),
		of("ci", keepingCIKeys), of("ci-token", exchanging), of("ci-trust", trusting),
		of("extension", extending), of("extension", extendingAlone),
		of("role-create", addingRoles), of("role-repeat", repeatingRoles), of("role-name", namingRoles),
		of("role-limit", limitingRoles), of("role-access", usingRoles), of("role-connect", grantingConnect),
		of("role-reveal", revealingRoles), of("role-rotate", rotatingRoles), of("role-revoke", revokingRoles),
		of("role-delete", deletingRoles), of("role-expire", expiringRoles), of("role-agent", interruptingRoles),
		of("role-refused", refusingRoles),
		of("role-off", switchingRolesOff), of("role-login", keepingLogins), of("role-wire", talkingRoles),
		of("role-log", recordingRoles), of("role-outage", losingPartsOfRoles),
		of("legacy-opt-in", optingIn), of("legacy-create", addingLegacyRoles), of("legacy-delete", deletingLegacyRoles),
		of("legacy-agent", reconcilingRoles), of("legacy-wire", talkingLegacyRoles),
	)
}

// withBoth adds the stories again that play over both models.
func withBoth(areas ...[]Scenario) (all []Scenario) {
	for _, sc := range slices.Concat(areas...) {
		all = append(all, sc)
		if sc.Both {
			legacy := sc
			legacy.Area = "legacy-" + sc.Area
			legacy.Play = func(s *Stage) {
				s.legacy = true
				sc.Play(s)
			}
			all = append(all, legacy)
		}
	}
	return all
}

// of says of a list's stories which area they are of. It leaves the list as it is: drivers play side by side.
func of(area string, list []Scenario) []Scenario {
	list = slices.Clone(list)
	for i := range list {
		list[i].Area = area
	}
	return list
}
