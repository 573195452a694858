.PHONY: typescript-types
typescript-types: $(EVERYTHING) node-packages ## Generate typescript/bestarm.d.ts from the OpenAPI document.
	$(BIN)/python -m scripts.typescript_types
