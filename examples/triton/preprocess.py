"""The model `preprocess` of make_repository.py, for the Python backend of Triton: from the bytes of pictures to the input of the plan."""
import json
from pathlib import Path

import cgc
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        folder = Path(args["model_repository"], args["model_version"])
        self._preprocess = cgc.Preprocess.from_json(json.loads((folder / "preprocess.json").read_text()))
        (output,) = json.loads(args["model_config"])["output"]
        self._name, self._dtype = output["name"], {"TYPE_FP32": "float32", "TYPE_FP16": "float16"}[output["data_type"]]

    def execute(self, requests):
        """Preprocesses the pictures of all requests at once. A picture that cannot be used fails its own request."""
        pictures = [triton.get_input_tensor_by_name(request, "picture").as_numpy().reshape(-1) for request in requests]
        images = self._preprocess([picture for of_request in pictures for picture in of_request], dtype=self._dtype)
        responses, begin = [], 0
        for of_request in pictures:
            rows = slice(begin, begin + len(of_request))
            failed = [str(error) for error in images.errors[rows] if error is not None]
            responses.append(
                triton.InferenceResponse(error=triton.TritonError(failed[0], triton.TritonError.INVALID_ARG)) if failed
                else triton.InferenceResponse([triton.Tensor(self._name, images.pixels[rows])]))
            begin = rows.stop
        return responses
