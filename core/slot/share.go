package slot

import "fmt"

// Half is the most that one may hold of what many share, so that nobody takes all of it, however long it is held. Of a single one
// it is that one.
func Half(all int) int { return max(1, all/2) }

// CheckShare checks a setting of what one may hold of what many share, as the operator knows both: "--workers-per-account", say,
// and "--workers". Its error names them unless at least one can be held, and at most half of all.
func CheckShare(setting string, one int, of string, all int) error {
	if one >= 1 && one <= all/2 {
		return nil
	}
	return fmt.Errorf("%s is %d, and must be from 1 to half of %s, which is %d: else one could hold all of them",
		setting, one, of, all)
}
