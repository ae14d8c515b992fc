package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
)

// List all open incidents, page by page, and recognize errors of the API.
func Example() {
	controller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == api.Prefix+"/incidents" && r.URL.Query().Get("after") == "":
			fmt.Fprint(w, `{"items": [{"id": "i2", "cause": "incast", "location": "tor2:Ethernet0"}], "next": "page2"}`)
		case r.URL.Path == api.Prefix+"/incidents":
			fmt.Fprint(w, `{"items": [{"id": "i1", "cause": "storm", "location": "h14"}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"detail": "incident \"i9\": not found"}`)
		}
	}))
	defer controller.Close()

	c, err := client.New(controller.URL, "", controller.Client())
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for incident, err := range client.All(func(after string) (api.Page[api.Incident], error) {
		return c.Incidents(ctx, api.IncidentsQuery{State: "open", Paging: api.Paging{After: after}})
	}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(incident.ID, incident.Cause, incident.Location)
	}
	_, err = c.Incident(ctx, "i9")
	fmt.Println(errors.Is(err, api.ErrNotFound))

	// Output:
	// i2 incast tor2:Ethernet0
	// i1 storm h14
	// true
}
