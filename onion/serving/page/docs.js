// The interface of the service, drawn by Swagger UI from /openapi.json; what it tries out has the service's token.

import { authorization, call } from "./api.js";

const failed = document.getElementById("error");

try {
  const spec = await call("/openapi.json");
  window.SwaggerUIBundle({
    spec,
    domNode: document.getElementById("interface"),
    deepLinking: false,
    requestInterceptor: (request) => Object.assign(request, { headers: { ...request.headers, ...authorization() } }),
  });
} catch (error) {
  failed.textContent = error.message;
  failed.hidden = false;
}
