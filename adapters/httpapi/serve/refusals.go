package serve

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
)

// refusable lists the codes that a route may answer with: those of the checks that its row asks for, and its handler's own.
func (route *Route) refusable() []fault.Code {
	codes := append([]fault.Code{
		fault.ValidationError, fault.RequestTimeout, fault.HeaderTooLarge, fault.InternalError, fault.ServerBusy,
	}, route.Refusals...)
	if route.Key != Public {
		codes = append(codes, fault.Unauthorized, fault.RateLimited, fault.AccountSuspended, fault.KeyScopeDenied, fault.Maintenance,
			route.planRefusal())
	}
	if route.Key == Public && route.Class != "" {
		codes = append(codes, fault.RateLimited, fault.Maintenance)
	}
	if route.Body.IsJSON() {
		codes = append(codes, fault.InvalidJSON, fault.UnsupportedMediaType, fault.PayloadTooLarge)
	}
	if route.Body.IsStream() {
		codes = append(codes, fault.UnsupportedMediaType, fault.LengthRequired)
	}
	if slices.Contains(route.Parameters(), FilenameParameter) {
		codes = append(codes, fault.InvalidBackupFilename)
	}
	if route.Gate != "" {
		codes = append(codes, route.Gate.Refusal())
		if err := route.Gate.AdmitsPreview(); err != nil && route.Target != nil && route.Target.Previews {
			codes = append(codes, fault.CodeOf(err))
		}
	}
	if route.Target != nil {
		codes = append(codes, route.Target.Missing)
		if route.Action != account.See && route.Action != "" { // everybody may see what is in reach
			codes = append(codes, fault.Forbidden)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// refusals adds a response for each status with which the route may refuse a request.
func (d *description) refusals(route *Route, to object) error {
	byStatus := map[int][]fault.Code{}
	for _, code := range route.refusable() {
		byStatus[code.Status()] = append(byStatus[code.Status()], code)
	}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		ref, err := d.refusal(byStatus[status], route.BareMaintenance)
		if err != nil {
			return err
		}
		to[strconv.Itoa(status)] = ref
	}
	return nil
}

// refusal is the response for one or more codes of a status. It is written down once, and referred to by its name.
func (d *description) refusal(codes []fault.Code, bare bool) (object, error) {
	bare = bare && slices.Contains(codes, fault.Maintenance)
	var names []string
	for _, code := range codes {
		names = append(names, camel(code))
	}
	name := strings.Join(names, "Or")
	if bare {
		name += "Bare"
	}
	ref := object{"$ref": "#/components/responses/" + name}
	if d.responses[name] != nil {
		return ref, nil
	}
	content, err := d.jsonOf(wire.Error{}, false)
	if err != nil {
		return nil, err
	}
	if bare {
		if content, err = d.eitherError(content); err != nil {
			return nil, err
		}
	}
	var meanings []string
	examples := object{}
	for _, code := range codes {
		meanings = append(meanings, fmt.Sprintf("`%s`: %s", code, code.Meaning()))
		examples[string(code)] = object{"$ref": "#/components/examples/" + string(code)}
		d.examples[string(code)] = exampleOf(code)
	}
	content["application/json"].(object)["examples"] = examples
	response := object{"description": strings.Join(meanings, "\n\n"), "content": content}
	if slices.ContainsFunc(codes, retriable) || slices.Contains(codes, fault.AgentError) { // which says it where the server is away
		response["headers"] = object{fasthttp.HeaderRetryAfter: object{
			"description": "Seconds to wait before the next attempt", "schema": object{"type": "integer", "minimum": 1},
		}}
	}
	d.responses[name] = response
	return ref, nil
}

// eitherError allows the form without the envelope beside it.
func (d *description) eitherError(enveloped object) (object, error) {
	plain, err := d.schemas.of(wire.BareMaintenance{}, false)
	return jsonContent(object{"oneOf": []any{enveloped["application/json"].(object)["schema"], plain}}), err
}

// camel writes NOT_FOUND as NotFound.
func camel(code fault.Code) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.ToLower(string(code)), "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// exampleOf is an error as its code comes; what an error's message and details say depends on the request.
func exampleOf(code fault.Code) object {
	body := object{"code": code, "message": code.Meaning(), "details": []fault.Detail{}}
	if code == fault.ValidationError {
		body["message"] = "name: is required"
		body["details"] = []fault.Detail{{Field: "name", Issue: "is required"}}
	}
	return object{"value": object{"error": body}}
}
